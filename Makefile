# `make help` lists the targets. Variables: CC, BUILD (directory of the results), EXTRA (more compiler flags),
# FUZZ_SECONDS (per fuzzer), BENCH (options of the benchmark), SCHEDULES (per lock in explore-soak), SOAK_MINUTES (of
# storms), FIXED_SCHEDULES (per lock without its bug in the zoo), MATRIX_REPEAT (trials per cell), ORACLE_HISTORIES (number
# of histories) from seed ORACLE_FIRST on, PORCUPINE_HISTORIES (per model) from PORCUPINE_SEED on, MUTANTS (most mistakes
# to plant, in each part), MUTANT_OPTIONS.
CC ?= gcc
ifeq ($(origin CC),default)
CC = gcc
endif
BUILD ?= build
EXTRA ?=
# -static if the linker can; not with a sanitizer, whose programs would not start. Expanded only where it is used.
STATIC = $(if $(findstring sanitize,$(EXTRA)),,$(shell echo 'int main(void) { return 0; }' | $(CC) $(EXTRA) -static -x c -o /dev/null - 2>/dev/null && echo -static))
FUZZ_SECONDS ?= 60
SCHEDULES ?= 1000000
BENCH ?=
SOAK_MINUTES ?= 60
FIXED_SCHEDULES ?= 10000
MATRIX_REPEAT ?= 20
ORACLE_HISTORIES ?= 200000
ORACLE_FIRST ?= 0
PORCUPINE_HISTORIES ?= 100000
PORCUPINE_SEED ?= 1
MUTANTS ?= 100000
MUTANT_OPTIONS ?=

# clang does not know hiredis' %b.
WARNINGS = -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wconversion -Wvla -Wformat=2 \
           -Wpointer-arith -Wcast-qual -Wwrite-strings -Wno-format-invalid-specifier
STANDARD = -std=c11 -D_GNU_SOURCE -I. -pthread
# Without the headers of a service's library, its locks are reported as not installed; everything else is built.
POSTGRES_HEADERS := $(firstword $(wildcard /usr/include/postgresql/libpq-fe.h /usr/include/libpq-fe.h /usr/local/include/libpq-fe.h))
CURL_HEADERS := $(firstword $(wildcard /usr/include/curl/curl.h /usr/include/*/curl/curl.h /usr/local/include/curl/curl.h))
ZOOKEEPER_HEADERS := $(firstword $(wildcard /usr/include/zookeeper/zookeeper.h /usr/local/include/zookeeper/zookeeper.h))
# A static archive: --wrap can then replace the clock that it reads (harness/environment/zookeeper_session.c).
ZOOKEEPER_LIBRARY := $(if $(ZOOKEEPER_HEADERS),$(filter /%,$(shell $(CC) -print-file-name=libzookeeper_st.a)))
comma = ,
SERVICES = $(if $(POSTGRES_HEADERS),-DLOCKSTORM_POSTGRES=1 -I$(patsubst %/,%,$(dir $(POSTGRES_HEADERS))))
SERVICES += $(if $(CURL_HEADERS),-DLOCKSTORM_HTTP=1)
SERVICES += $(if $(ZOOKEEPER_LIBRARY),-DLOCKSTORM_ZOOKEEPER=1 -I$(patsubst %/,%,$(dir $(ZOOKEEPER_HEADERS))))
POSTGRES_LIBS = $(if $(POSTGRES_HEADERS),-lpq)
SERVICE_LIBS = $(POSTGRES_LIBS)
SERVICE_LIBS += $(if $(CURL_HEADERS),-lcurl)
SERVICE_LIBS += $(if $(ZOOKEEPER_LIBRARY),-Wl$(comma)--wrap=clock_gettime $(ZOOKEEPER_LIBRARY))
CFLAGS   = $(STANDARD) -O2 -g -fPIC -fvisibility=default $(WARNINGS) $(SERVICES) $(EXTRA)

# A room is a directory with C files; each becomes a static library, build/rooms/ROOM.a, without the files that have a
# main(). A program is its main() and, of all rooms, what the linker finds that it needs.
ROOMS    := $(patsubst %/,%,$(sort $(dir $(shell find harness checkers faults -name '*.c' ! -path '*/preload/*' ! -path '*/native/*'))))
NATIVE   := harness/lockstorm/native
SEAM     := $(NATIVE)/seam.py
# Sessions with other services than Redis. Loading their libraries takes ten times as long as starting a client or a
# store, so programs for locks on Redis are linked with the same files compiled without them.
SERVICE_FILES := $(addprefix harness/environment/,http_session.c postgres_session.c zookeeper_session.c) harness/resource/store_table.c
object    = $(patsubst %.c,$(BUILD)/o/%.o,$(1))
archive   = $(patsubst %,$(BUILD)/rooms/%.a,$(1))
members   = $(filter-out %_main.c $(SERVICE_FILES),$(wildcard $(1)/*.c))
beneath   = $(filter $(1)/%,$(ROOMS))
WITH      = $(BUILD)/rooms/with-services.a
WITHOUT   = $(BUILD)/rooms/without-services.a
# The rooms that Python calls (liblockstorm.so): whole, because the linker does not see what Python needs; and one
# function of a room that it does not need otherwise.
DRIVER    = $(NATIVE) harness/process harness/scheduler $(call beneath,harness/locks) $(filter-out faults/proxy,$(call beneath,faults)) faults \
            checkers/engine checkers/properties
DRIVER_ALSO = -Wl,-u,validity_record_host_clock

PROGRAMS       = $(addprefix $(BUILD)/bin/,client client-group client-services store store-table proxy check linearize explore lock-adapter plugin history spawn reaper supervisor)
LIBRARY        = $(BUILD)/lib/liblockstorm.so
PRELOAD        = $(BUILD)/lib/liblockstorm-preload.so
NEAR           = $(BUILD)/lib/liblockstorm-near.so
LOOPBACK       = $(BUILD)/lib/liblockstorm-loopback.so
# The headers for plug-ins, which are compiled with -I $(BUILD)/include.
HEADERS        = $(addprefix $(BUILD)/include/harness/,client/lockstorm.h environment/env.h history/outcome.h \
                 $(addprefix locks/common/,key.h lock.h majority.h poll.h push.h script.h watchdog.h) \
                 $(addprefix locks/,redis/set_nx_px.h redis/signal_list.h zookeeper/zookeeper_node.h zookeeper/zookeeper_queue.h)) \
                 $(BUILD)/include/lockstorm.h
# A test is a file with a main(): of tests/c linked with the rooms, of tests/programs alone, for it runs under the supervisor.
TESTS          = $(patsubst tests/c/%.c,%,$(filter-out %_plugin.c %/judge_records.c,$(wildcard tests/c/*.c)))
SUPERVISED     = $(patsubst tests/programs/%.c,%,$(wildcard tests/programs/*.c))
TEST_PROGRAMS  = $(addprefix $(BUILD)/tests/,$(TESTS) $(SUPERVISED))
JUDGE          = $(BUILD)/tests/libjudge.so
BENCH_PROGRAMS = $(addprefix $(BUILD)/bench/,history_append make_history make_operations scan)
FUZZERS        = $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))
PASSED_CLANG   = $(patsubst %.c,$(BUILD)/lint/%.passed,$(filter %.c,$(SOURCES)))
SOURCES        = $(sort $(shell find harness checkers faults tests bench adapters/starters -name '*.[ch]'))

PYTHON = .venv/bin/python
# The launcher installs and builds what is missing; with its command "test" also the packages of tests.
READY         = ./lockstorm --prepare
READY_TO_TEST = ./lockstorm test --prepare
READY_WITH_ALL = LOCKSTORM_LEVEL=all ./lockstorm --prepare
READY_TO_BENCH = LOCKSTORM_LEVEL=bench ./lockstorm --prepare

.PHONY: all deps-all build programs headers test-programs judge bench-programs fuzzers demo test nightly lint format sanitize fuzz oracle porcupine mutants mutants-short matrix requirements help-text schemas servers zoo libraries bench \
        soak explore-soak clean help
all: build

build: $(SEAM) $(PROGRAMS) $(LIBRARY) $(PRELOAD) $(NEAR) $(LOOPBACK) $(HEADERS) ## compile the programs and libraries
programs: $(PROGRAMS)
headers: $(HEADERS)
test-programs: $(TEST_PROGRAMS) $(JUDGE)
judge: $(JUDGE)
bench-programs: $(BENCH_PROGRAMS)
fuzzers: $(FUZZERS)

# What is linked behind a main(). --as-needed leaves out each library that nothing of a program calls.
LINKED = -Wl,--as-needed -Wl,--start-group $(SERVED) $(ARCHIVES) -Wl,--end-group -lhiredis -ljansson -lev -lm -ldl -lresolv $(LIBS)
ARCHIVES = $(call archive,$(ROOMS))
SERVED = $(WITHOUT)

define room_rule
$(call archive,$(1)): $(call object,$(call members,$(1))) $(1)
endef
$(foreach each,$(ROOMS) $(NATIVE),$(eval $(call room_rule,$(each))))
$(WITH): $(call object,$(SERVICE_FILES))
$(WITHOUT): $(patsubst %.c,$(BUILD)/o/without/%.o,$(SERVICE_FILES))
# A room's directory is newer than its archive when a file has gone.
$(call archive,$(ROOMS) $(NATIVE)) $(WITH) $(WITHOUT):
	@mkdir -p $(@D)
	@rm -f $@
	ar rcsD $@ $(filter %.o,$^)

# PROGRAM has its main() in PROGRAM_main.c; two are linked once more, with the other services.
MAINS     := $(shell find harness checkers faults -name '*_main.c')
main_of    = $(filter %/$(subst -,_,$(or $(MAIN_OF_$(1)),$(1)))_main.c,$(MAINS))
MAIN_OF_client-services = client
MAIN_OF_store-table     = store
define program_rule
$(BUILD)/bin/$(1): $(call object,$(call main_of,$(1)))
endef
$(foreach each,$(notdir $(PROGRAMS)),$(eval $(call program_rule,$(each))))
# Of the tests, those of sessions with other services.
SERVING = $(addprefix $(BUILD)/,bin/client-services $(addprefix tests/,blocking_call http_requests lock_threads session_begin))
$(SERVING): SERVED = $(WITH)
$(SERVING): LIBS = $(SERVICE_LIBS)
$(BUILD)/bin/store-table: SERVED = $(WITH)
$(BUILD)/bin/store-table: LIBS = $(POSTGRES_LIBS)
$(BUILD)/bin/reaper: LIBS = $(STATIC) # static: every trial starts it, and it should start fast
# Programs that load a plug-in export to it the functions that the headers declare, and no others.
LENDERS = $(addprefix $(BUILD)/bin/,client client-group client-services explore plugin)
$(LENDERS): LENT = -Wl,--dynamic-list=harness/client/plugin.list
$(LENDERS): harness/client/plugin.list

$(addprefix $(BUILD)/tests/,$(TESTS)): $(BUILD)/tests/%: $(BUILD)/o/tests/c/%.o
$(addprefix $(BUILD)/tests/,$(SUPERVISED)): $(BUILD)/tests/%: $(BUILD)/o/tests/programs/%.o
$(BENCH_PROGRAMS): $(BUILD)/bench/%: $(BUILD)/o/bench/%.o

$(PROGRAMS) $(TEST_PROGRAMS) $(BENCH_PROGRAMS): $(ARCHIVES) $(WITH) $(WITHOUT)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(LINKED) $(LENT)

# Needs Go; the tests that use it make it.
$(BUILD)/tests/porcupine_judge: $(wildcard tests/porcupine/*.go tests/porcupine/go.*)
	@mkdir -p $(@D)
	cd tests/porcupine && PATH="$$PATH:/usr/local/go/bin" go build -o $(abspath $@) .

# Need Java and Go; the tests that use them make them.
$(BUILD)/tests/java/%.class: tests/programs/%.java
	@mkdir -p $(@D)
	javac -d $(@D) $<
$(BUILD)/tests/go/%: tests/programs/%.go
	@mkdir -p $(@D)
	cd tests/programs && PATH="$$PATH:/usr/local/go/bin" go build -o $(abspath $@) $(<F)

$(filter-out $(BUILD)/include/lockstorm.h,$(HEADERS)): $(BUILD)/include/%: %
	@mkdir -p $(@D)
	cp $< $@
# The header that a plug-in includes.
$(BUILD)/include/lockstorm.h:
	@mkdir -p $(@D)
	echo '#include "harness/client/lockstorm.h"' >$@

# What Python declares of the library is written anew when a header of it changes.
$(SEAM): ci/seam.py $(wildcard harness/history/*.h harness/scheduler/*.h harness/client/validity.h harness/process/spawn.h $(NATIVE)/*.h faults/common/*.h faults/server/postgres.h checkers/engine/*.h)
	CC="$(CC)" python3 $<

whole = -Wl,--whole-archive $(call archive,$(1)) -Wl,--no-whole-archive
$(LIBRARY): $(call archive,$(NATIVE)) $(ARCHIVES) $(WITHOUT)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -o $@ $(call whole,$(DRIVER)) $(DRIVER_ALSO) $(LINKED)

# Without EXTRA: servers load it, and they are built without a sanitizer.
$(PRELOAD): $(addprefix harness/process/,preload/preload_clock.c preload/zygote.c zygote_service.c spawn.c preload/clock_page.h \
            preload/preload.h spawn.h zygote_service.h)
	@mkdir -p $(@D)
	$(CC) $(STANDARD) -O2 -fPIC $(WARNINGS) -shared -o $@ $(filter %.c,$^)

$(NEAR): harness/process/preload/near.c
$(LOOPBACK): harness/process/preload/loopback.c
$(NEAR) $(LOOPBACK):
	@mkdir -p $(@D)
	$(CC) $(STANDARD) -O2 -fPIC $(WARNINGS) -shared -o $@ $<

$(JUDGE): $(BUILD)/o/tests/c/judge_records.o $(ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -o $@ $(filter %.o,$^) $(LINKED)

# Fuzzers are linked with the rooms of what reads foreign input, compiled for libFuzzer.
FUZZED = harness/history faults/names harness/simulation $(filter checkers checkers/%,$(ROOMS)) faults/proxy harness/library_service harness/library harness/application harness/search harness/recogniser $(filter harness/recogniser/%,$(ROOMS))
FUZZED_ARCHIVES = $(patsubst $(BUILD)/rooms/%,$(BUILD)/fuzz/rooms/%,$(call archive,$(sort $(FUZZED))))
FUZZ_FLAGS = $(STANDARD) $(WARNINGS) -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all
define fuzzed_rule
$(BUILD)/fuzz/rooms/$(1).a: $(patsubst %.c,$(BUILD)/fuzz/o/%.o,$(call members,$(1))) $(1)
endef
$(foreach each,$(sort $(FUZZED)),$(eval $(call fuzzed_rule,$(each))))
$(FUZZED_ARCHIVES):
	@mkdir -p $(@D)
	@rm -f $@
	ar rcsD $@ $(filter %.o,$^)
$(FUZZERS): $(BUILD)/fuzz/%: $(BUILD)/fuzz/o/tests/fuzz/%.o $(FUZZED_ARCHIVES)
	clang $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $(filter %.o,$^) -Wl,--as-needed -Wl,--start-group $(FUZZED_ARCHIVES) -Wl,--end-group -lhiredis -ljansson -lev -lm
$(BUILD)/fuzz/o/%.o: %.c
	@mkdir -p $(@D)
	clang $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(BUILD)/o/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/o/without/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SERVICES),$(CFLAGS)) -MMD -MP -c -o $@ $<

# A file that clang has accepted, with all that it includes.
$(BUILD)/lint/%.passed: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	clang $(STANDARD) -Iharness/client $(WARNINGS) $(SERVICES) -fsyntax-only -MMD -MP -MF $(@:.passed=.d) -MT $@ $<
	@touch $@

# Changes with the compiler and its flags: everything is then compiled and linked again.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CFLAGS) $(STATIC)' | cmp -s - $@ || echo '$(CC) $(CFLAGS) $(STATIC)' >$@
.PHONY: FORCE
FORCE:

demo: ## show a lock that fails on a real Redis, and a fencing token that prevents the damage
	@./lockstorm demo

deps-all: ## install all packages of locks, tests and benchmarks, with the other servers
	@$(READY_WITH_ALL)

test: ## run the tests, except slow ones; `./lockstorm test --all` runs all
	@./lockstorm test

nightly: ## run all tests, and for hours: repetitions, sanitizers, fuzzers, random histories, mutants, soaks; each step has a time limit
	@$(READY_TO_TEST)
	@PYTHONPATH=harness:. $(PYTHON) -m tests.tiers.nightly

lint: ## check the style and types of C and Python without changing a file
	@$(READY_TO_TEST)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/clang-format --dry-run -Werror $(SOURCES)
	@$(MAKE) --no-print-directory -s -j $$(nproc) $(PASSED_CLANG)

format: ## format C and Python
	@$(READY_TO_TEST)
	.venv/bin/ruff check --fix -q .
	.venv/bin/ruff format -q .
	.venv/bin/clang-format -i $(SOURCES)

sanitize: ## run the locks under the address, undefined-behaviour and thread sanitizers
	@$(READY_TO_TEST)
	$(PYTHON) -m pytest -q tests/project/test_sanitized.py
	LOCKSTORM_PROGRAMS=$(BUILD)/asan $(PYTHON) -m pytest -q -n 2 tests/trial/test_trial.py tests/locks/test_locks_*.py
	TSAN_OPTIONS=halt_on_error=1 LOCKSTORM_PROGRAMS=$(BUILD)/tsan $(PYTHON) -m pytest -q -n 2 tests/trial/test_trial.py tests/locks/test_locks_*.py

fuzz: ## run each fuzzer of the readers of histories and messages for FUZZ_SECONDS (60)
	@$(READY_TO_TEST)
	@$(MAKE) -s fuzzers
	@cd $(BUILD)/fuzz && for each in $(patsubst %_fuzz,%,$(notdir $(FUZZERS))); do \
	    mkdir -p found/$$each && \
	    ./$${each}_fuzz -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 $$(cat $(CURDIR)/tests/fuzz/$$each.options 2>/dev/null) \
	        $$([ ! -e $(CURDIR)/tests/fuzz/$$each.dict ] || echo -dict=$(CURDIR)/tests/fuzz/$$each.dict) \
	        found/$$each $(CURDIR)/tests/fuzz/corpus/$$each || exit; done

servers: ## play the matrix and clock faults in real time on redis-server 8 and valkey-server 8, which ci/servers fetches
	@$(READY_TO_BENCH)
	@ci/servers
	@for each in redis valkey; do \
	    ./lockstorm doctor --server build/servers/bin/$$each-server-8 >build/servers/doctor || { cat build/servers/doctor; exit 1; }; \
	    echo "$$each-server-8:" && ./lockstorm matrix --server build/servers/bin/$$each-server-8 | tail -n 1 || exit; done

oracle: ## compare the checkers with their definitions on ORACLE_HISTORIES (200000) random histories, from seed ORACLE_FIRST (0), and with themselves on changed ones
	@$(READY_TO_TEST)
	LOCKSTORM_ORACLE_HISTORIES=$(ORACLE_HISTORIES) LOCKSTORM_ORACLE_FIRST=$(ORACLE_FIRST) \
	    LOCKSTORM_LINEARIZABLE_HISTORIES=$(ORACLE_HISTORIES) \
	    $(PYTHON) -m pytest -q -n 2 --dist worksteal tests/checkers/test_checkers.py tests/checkers/test_metamorphic.py \
	    tests/checkers/test_generator_coverage.py tests/checkers/test_linearizable.py \
	    -k 'definitions or metamorphic or generator or simulated'

porcupine: ## compare the linearizability checker with Porcupine on PORCUPINE_HISTORIES (100000) random histories per model; needs Go
	@$(READY_TO_TEST)
	LOCKSTORM_PORCUPINE_HISTORIES=$(PORCUPINE_HISTORIES) LOCKSTORM_PORCUPINE_SEED=$(PORCUPINE_SEED) \
	    $(PYTHON) -m pytest -q -n 2 -rP --durations=0 tests/checkers/test_porcupine.py

mutants: ## plant at most MUTANTS (100000) mistakes in each part that decides (MUTANT_OPTIONS="--ground proxy": in one), one at a time, and report which ones the tests find
	@$(READY_TO_TEST)
	@PYTHONPATH=harness:. $(PYTHON) -m tests.helpers.mutants --most $(MUTANTS) $(MUTANT_OPTIONS)

mutants-short: ## plant each mistake of tests/planted_mistakes.txt: the test beside it must find it
	@$(READY_TO_TEST)
	@$(MAKE) -s build test-programs
	@PYTHONPATH=harness:. $(PYTHON) -m tests.helpers.mutants_short

libraries: ## write docs/libraries.md from the kept figures and the findings
	@$(READY_TO_TEST)
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.libraries.libraries_page

matrix: ## write the tables of expected verdicts into README.md, docs/matrix.md and docs/adapter-cells.md
	@$(READY)
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.matrix.matrix_pages
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.conformance.adapter_cells

requirements: ## lock the Python packages (ci/requirements*.txt) to the newest versions that fit, with hashes, by uv
	@$(READY)
	@$(PYTHON) -m pip install -q --disable-pip-version-check --upgrade --target $(BUILD)/uv uv
	PYTHONPATH=$(BUILD)/uv:harness:. $(PYTHON) -m tests.helpers.locked_requirements

help-text: ## write what ./lockstorm --help shows before anything is installed
	@$(READY)
	@./lockstorm --help >harness/lockstorm/cli/help.txt

schemas: ## write docs/*.schema.json from the types of the package
	@$(READY)
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.cli.schemas

zoo: ## run the zoo's scenarios and searches, record the results, and write them into README.md and docs/zoo.md
	@$(READY)
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm zoo --record
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.zoo.zoo_pages

bench: ## measure records, checks and trials, and write build/bench.json (BENCH=--quick for a short run)
	@$(READY_TO_BENCH) || $(READY)
	@$(MAKE) -s bench-programs
	@PYTHONPATH=harness:. $(PYTHON) -m bench.bench $(BENCH)

soak: ## storms for SOAK_MINUTES (60), the zoo with FIXED_SCHEDULES (10000) of each lock without its bug, and the matrix MATRIX_REPEAT (20) times beside a busy core; fail on leaks, false alarms and unstable cells
	@$(READY)
	@PYTHONPATH=harness:. $(PYTHON) -m tests.soak.storm_soak --duration $(SOAK_MINUTES)min -o $(BUILD)/soak.json
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm zoo --fixed-schedules $(FIXED_SCHEDULES)
	@PYTHONPATH=harness:. $(PYTHON) -m tests.soak.matrix_soak --repeat $(MATRIX_REPEAT) -o $(BUILD)/matrix.json

explore-soak: ## search SCHEDULES (1000000) schedules of each correct lock for a false alarm; resumes an interrupted search
	@$(READY)
	@PYTHONPATH=harness:. $(PYTHON) -m tests.soak.explore_soak --schedules $(SCHEDULES) -o $(BUILD)/explore-soak

clean: ## remove the results of builds; installed packages stay
	rm -rf $(BUILD)/bin $(BUILD)/lib $(BUILD)/include $(BUILD)/o $(BUILD)/tests $(BUILD)/bench $(BUILD)/fuzz $(BUILD)/asan $(BUILD)/tsan $(BUILD)/lint \
	    $(SEAM) $(BUILD)/flags $(BUILD)/bench.json $(BUILD)/soak.json $(BUILD)/matrix.json

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

-include $(shell find $(wildcard $(BUILD)/o $(BUILD)/lint $(BUILD)/fuzz/o) /dev/null -name '*.d')

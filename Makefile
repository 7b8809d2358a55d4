# `make help` lists what there is. Variables: CC, BUILD (where results go), EXTRA (more compiler flags), FUZZ_SECONDS (per
# fuzzer), BENCH (options of the benchmark), SCHEDULES (of the explorer's soak), SOAK_MINUTES (of storms), FIXED_SCHEDULES
# (of each lock in the zoo that has no bug), MATRIX_REPEAT (trials a cell), ORACLE_HISTORIES, ORACLE_FIRST, MUTANTS (how
# much to compare and plant).
CC ?= gcc
ifeq ($(origin CC),default)
CC = gcc
endif
BUILD ?= build
EXTRA ?=
# -static where that can be linked, and not under a sanitizer, which would not start: asked for only when it is needed.
STATIC = $(if $(findstring sanitize,$(EXTRA)),,$(shell echo 'int main(void) { return 0; }' | $(CC) $(EXTRA) -static -x c -o /dev/null - 2>/dev/null && echo -static))
FUZZ_SECONDS ?= 60
SCHEDULES ?= 1000000
BENCH ?=
SOAK_MINUTES ?= 60
FIXED_SCHEDULES ?= 10000
MATRIX_REPEAT ?= 20
ORACLE_HISTORIES ?= 200000
ORACLE_FIRST ?= 0
MUTANTS ?= 100000

# clang does not know hiredis' %b.
WARNINGS = -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wconversion -Wvla -Wformat=2 \
           -Wpointer-arith -Wcast-qual -Wwrite-strings -Wno-format-invalid-specifier
STANDARD = -std=c11 -D_GNU_SOURCE -I. -pthread
# Without the headers of a service's library all else is built, and its locks are "not installed".
POSTGRES_HEADERS := $(firstword $(wildcard /usr/include/postgresql/libpq-fe.h /usr/include/libpq-fe.h /usr/local/include/libpq-fe.h))
CURL_HEADERS := $(firstword $(wildcard /usr/include/curl/curl.h /usr/include/*/curl/curl.h /usr/local/include/curl/curl.h))
ZOOKEEPER_HEADERS := $(firstword $(wildcard /usr/include/zookeeper/zookeeper.h /usr/local/include/zookeeper/zookeeper.h))
# As an archive: the clock that it asks for can then be another one (harness/tree_session.c).
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

HISTORY = harness/history.c
STAGE   = harness/clock.c harness/stage.c
LOCKS   = $(sort $(wildcard harness/locks/*.c harness/locks/zoo/*.c))
SESSIONS = harness/http_session.c harness/sql_session.c harness/tree_session.c
ENV     = harness/env.c harness/env_live.c harness/env_reply.c harness/strand.c harness/adapter_session.c $(SESSIONS)
FAULTS  = $(sort $(wildcard faults/*.c))
LINKS   = $(sort $(wildcard faults/proxy/*.c))
LINEAR  = $(addprefix checkers/,atlas.c edn.c limits.c linearizable.c linearizable_count.c linearizable_owner.c \
          linearizable_register.c linearize.c operations.c operations_write.c recorded.c source.c text.c)
CHECKS  = $(filter-out checkers/linearize_main.c $(LINEAR),$(sort $(wildcard checkers/*.c)))

CLIENT  = harness/client.c harness/client_work.c harness/plugin.c $(ENV) $(LOCKS) $(STAGE) $(HISTORY)
STORE   = harness/store.c harness/store_table.c harness/resource.c $(STAGE) $(HISTORY)
PROXY   = $(LINKS) $(STAGE) $(HISTORY)
CHECK   = $(CHECKS) harness/history_json.c $(HISTORY)
LINEARIZE = checkers/linearize_main.c $(LINEAR) harness/history_json.c $(HISTORY)
TOOL    = harness/history_main.c harness/history_json.c $(HISTORY)
EXPLORER = $(sort $(wildcard harness/explorer/*.c))
EXPLORE = $(EXPLORER) harness/client_work.c harness/plugin.c harness/resource.c harness/env.c harness/env_reply.c $(LOCKS) \
          $(filter-out checkers/check.c checkers/say.c,$(CHECKS)) $(STAGE) $(HISTORY)
DRIVER  = harness/conductor.c harness/rest.c harness/driver/describe.c harness/driver/describe_lock.c harness/env.c \
          harness/leash.c $(LOCKS) $(FAULTS) $(STAGE) $(HISTORY)
PLUGIN  = harness/plugin_main.c harness/plugin.c harness/driver/describe_lock.c harness/env.c $(LOCKS)

PROGRAMS       = $(addprefix $(BUILD)/bin/,client client-services store proxy check linearize explore plugin history leash warden)
LIBRARY        = $(BUILD)/lib/liblockstorm.so
PRELOAD        = $(BUILD)/lib/liblockstorm-preload.so
# What somebody's own lock in C is built against: -I $(BUILD)/include.
HEADERS        = $(addprefix $(BUILD)/include/harness/,lockstorm.h env.h outcome.h \
                 $(addprefix locks/,key.h lock.h majority.h poll.h script.h set_nx_px.h watchdog.h))
TEST_PROGRAMS  = $(addprefix $(BUILD)/tests/,blocking_call history_writers http_requests linearizable_oracle lock_threads \
                 resp_guard stop_writer)
JUDGE          = $(BUILD)/tests/libjudge.so
BENCH_PROGRAMS = $(addprefix $(BUILD)/bench/,history_append make_history make_operations scan)
FUZZERS        = $(addprefix $(BUILD)/fuzz/,atlas_fuzz check_fuzz edn_fuzz history_fuzz history_json_fuzz resp_fuzz schedule_fuzz)
SOURCES        = $(sort $(wildcard harness/*.[ch] harness/*/*.[ch] harness/locks/zoo/*.[ch] checkers/*.[ch] faults/*.[ch] faults/proxy/*.[ch] tests/*/*.[ch] bench/*.c adapters/starters/*.c))

PYTHON = .venv/bin/python
# The launcher installs what is missing and builds; what only tests need, before its command "test".
READY         = ./lockstorm --version >/dev/null
READY_TO_TEST = ./lockstorm test --version >/dev/null
READY_WITH_ALL = LOCKSTORM_LEVEL=all ./lockstorm --version >/dev/null
READY_TO_BENCH = LOCKSTORM_LEVEL=bench ./lockstorm --version >/dev/null

object = $(patsubst %.c,$(BUILD)/o/%.o,$(1))

.PHONY: all deps-all build programs headers test-programs judge bench-programs fuzzers demo test lint format sanitize fuzz oracle mutants matrix zoo bench \
        soak explore-soak clean help
all: build

build: $(PROGRAMS) $(LIBRARY) $(PRELOAD) $(HEADERS) ## compile everything that runs, breaks or judges a lock
programs: $(PROGRAMS)
headers: $(HEADERS)
test-programs: $(TEST_PROGRAMS) $(JUDGE)
judge: $(JUDGE)
bench-programs: $(BENCH_PROGRAMS)
fuzzers: $(FUZZERS)

# To load the libraries of other services takes ten times as long as to start a client: who lives on Redis does without.
$(BUILD)/bin/client: $(call object,$(filter-out $(SESSIONS),$(CLIENT))) $(patsubst %.c,$(BUILD)/o/without/%.o,$(SESSIONS))
$(BUILD)/bin/client: LIBS = -lhiredis -ljansson
$(BUILD)/bin/client-services: $(call object,$(CLIENT))
$(BUILD)/bin/client-services: LIBS = -lhiredis -ljansson $(SERVICE_LIBS)
$(BUILD)/bin/store: $(call object,$(STORE))
$(BUILD)/bin/store: LIBS = -lhiredis -lev $(POSTGRES_LIBS)
$(BUILD)/bin/proxy: $(call object,$(PROXY))
$(BUILD)/bin/proxy: LIBS = -lhiredis -lev
$(BUILD)/bin/check: $(call object,$(CHECK))
$(BUILD)/bin/check: LIBS = -ljansson -lm
$(BUILD)/bin/linearize: $(call object,$(LINEARIZE))
$(BUILD)/bin/linearize: LIBS = -ljansson
$(BUILD)/bin/explore: $(call object,$(EXPLORE))
$(BUILD)/bin/explore: LIBS = -lhiredis -ljansson -lm
$(BUILD)/bin/plugin: $(call object,$(PLUGIN))
$(BUILD)/bin/plugin: LIBS = -lhiredis -ljansson
# Whoever loads a plug-in lends it what the headers promise, and nothing more.
LENDERS = $(addprefix $(BUILD)/bin/,client client-services explore plugin)
$(LENDERS): LENT = -Wl,--dynamic-list=harness/plugin.list -ldl
$(LENDERS): harness/plugin.list
$(BUILD)/bin/history: $(call object,$(TOOL))
$(BUILD)/bin/history: LIBS = -ljansson
$(BUILD)/bin/leash: $(call object,harness/leash_main.c harness/leash.c)
$(BUILD)/bin/warden: $(call object,harness/warden.c)
$(BUILD)/bin/warden: LIBS = $(STATIC) # started with every trial: nothing to link then

$(BUILD)/tests/blocking_call: $(call object,tests/c/blocking_call.c harness/conductor.c harness/rest.c $(ENV) $(STAGE) $(HISTORY))
$(BUILD)/tests/blocking_call: LIBS = -lhiredis $(SERVICE_LIBS)
$(BUILD)/tests/history_writers: $(call object,tests/c/history_writers.c $(STAGE) $(HISTORY))
$(BUILD)/tests/http_requests: $(call object,tests/c/http_requests.c $(ENV) $(STAGE) $(HISTORY))
$(BUILD)/tests/http_requests: LIBS = -lhiredis $(SERVICE_LIBS)
$(BUILD)/tests/linearizable_oracle: $(call object,tests/c/linearizable_oracle.c $(LINEAR) harness/history_json.c $(HISTORY))
$(BUILD)/tests/linearizable_oracle: LIBS = -ljansson
$(BUILD)/tests/lock_threads: $(call object,tests/c/lock_threads.c $(ENV) $(LOCKS) $(STAGE) $(HISTORY))
$(BUILD)/tests/lock_threads: LIBS = -lhiredis -ljansson $(SERVICE_LIBS)
$(BUILD)/tests/resp_guard: $(call object,tests/c/resp_guard.c faults/proxy/resp.c)
$(BUILD)/tests/stop_writer: $(call object,tests/c/stop_writer.c harness/conductor.c harness/rest.c $(STAGE) $(HISTORY))
$(BUILD)/tests/stop_writer: LIBS = -lhiredis

$(BUILD)/bench/history_append: $(call object,bench/history_append.c $(STAGE) $(HISTORY))
$(BUILD)/bench/make_history: $(call object,bench/make_history.c $(HISTORY))
$(BUILD)/bench/make_operations: $(call object,bench/make_operations.c)
$(BUILD)/bench/scan: $(call object,bench/scan.c)

$(PROGRAMS) $(TEST_PROGRAMS) $(BENCH_PROGRAMS):
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(LIBS) $(LENT)

$(HEADERS): $(BUILD)/include/%: %
	@mkdir -p $(@D)
	cp $< $@

$(LIBRARY): $(call object,$(DRIVER))
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -o $@ $^ -lhiredis -ljansson

# Loaded into servers, which have no sanitizer.
$(PRELOAD): harness/preload/clock.c harness/preload/zygote.c harness/leash.c harness/preload/clock_page.h \
            harness/preload/preload.h harness/leash.h
	@mkdir -p $(@D)
	$(CC) $(STANDARD) -O2 -fPIC $(WARNINGS) -shared -o $@ $(filter %.c,$^)

$(JUDGE): $(call object,tests/c/judge_records.c $(filter-out checkers/check.c,$(CHECK)))
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -o $@ $^ -ljansson -lm

HISTORY_READERS = harness/history.c harness/history.h harness/history_json.c harness/history_json.h tests/fuzz/image.h
$(BUILD)/fuzz/history_fuzz $(BUILD)/fuzz/history_json_fuzz: $(HISTORY_READERS)
$(BUILD)/fuzz/check_fuzz: $(filter-out checkers/check.c,$(CHECKS)) $(HISTORY_READERS) $(wildcard checkers/*.h)
$(BUILD)/fuzz/resp_fuzz: $(foreach part,resp ledger rule,faults/proxy/$(part).c faults/proxy/$(part).h)
$(BUILD)/fuzz/atlas_fuzz $(BUILD)/fuzz/edn_fuzz: $(LINEAR) $(HISTORY_READERS) $(wildcard checkers/*.h) tests/fuzz/outside.h
$(BUILD)/fuzz/schedule_fuzz: harness/explorer/schedule.c $(wildcard harness/explorer/*.h)
$(FUZZERS): $(BUILD)/fuzz/%: tests/fuzz/%.c
	@mkdir -p $(@D)
	clang $(STANDARD) $(WARNINGS) -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o $@ \
	    $(filter %.c,$^) -ljansson -lm

$(BUILD)/o/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/o/without/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SERVICES),$(CFLAGS)) -MMD -MP -c -o $@ $<

# Other flags or another compiler: everything is compiled and linked again.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CFLAGS) $(STATIC)' | cmp -s - $@ || echo '$(CC) $(CFLAGS) $(STATIC)' >$@
.PHONY: FORCE
FORCE:

demo: ## see a lock fail on a real Redis, and a fencing token stop the damage
	@./lockstorm demo

deps-all: ## install everything that a test, a benchmark or a lock can need: the other servers, too
	@$(READY_WITH_ALL)

test: ## run all tests
	@./lockstorm test

lint: ## check the style of C and Python; changes nothing
	@$(READY_TO_TEST)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/clang-format --dry-run -Werror $(SOURCES)
	clang $(STANDARD) $(WARNINGS) $(SERVICES) -fsyntax-only $(filter %.c,$(SOURCES))

format: ## rewrite C and Python in the project's layout
	@$(READY_TO_TEST)
	.venv/bin/ruff check --fix -q .
	.venv/bin/ruff format -q .
	.venv/bin/clang-format -i $(SOURCES)

sanitize: ## run the locks under the address, undefined-behaviour and thread sanitizers
	@$(READY_TO_TEST)
	$(PYTHON) -m pytest -q tests/test_sanitized.py
	LOCKSTORM_PROGRAMS=$(BUILD)/asan $(PYTHON) -m pytest -q -n 2 tests/test_trial.py tests/test_locks_*.py
	TSAN_OPTIONS=halt_on_error=1 LOCKSTORM_PROGRAMS=$(BUILD)/tsan $(PYTHON) -m pytest -q -n 2 tests/test_trial.py tests/test_locks_*.py

fuzz: ## let the fuzzers read hostile histories and messages, FUZZ_SECONDS (60) each
	@$(READY_TO_TEST)
	@$(MAKE) -s fuzzers
	@mkdir -p $(addprefix $(BUILD)/fuzz/found/,atlas check edn history history_json resp schedule)
	cd $(BUILD)/fuzz && ./history_fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -print_final_stats=1 \
	    found/history $(CURDIR)/tests/fuzz/corpus/history
	cd $(BUILD)/fuzz && ./history_json_fuzz -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
	    -dict=$(CURDIR)/tests/fuzz/history_json.dict found/history_json $(CURDIR)/tests/fuzz/corpus/history_json
	cd $(BUILD)/fuzz && ./resp_fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=1 \
	    -dict=$(CURDIR)/tests/fuzz/resp.dict found/resp $(CURDIR)/tests/fuzz/corpus/resp
	cd $(BUILD)/fuzz && ./check_fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=1 \
	    found/check $(CURDIR)/tests/fuzz/corpus/check
	cd $(BUILD)/fuzz && ./edn_fuzz -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
	    -dict=$(CURDIR)/tests/fuzz/edn.dict found/edn $(CURDIR)/tests/fuzz/corpus/edn
	cd $(BUILD)/fuzz && ./atlas_fuzz -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
	    -dict=$(CURDIR)/tests/fuzz/atlas.dict found/atlas $(CURDIR)/tests/fuzz/corpus/atlas
	cd $(BUILD)/fuzz && ./schedule_fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=256 -print_final_stats=1 \
	    -dict=$(CURDIR)/tests/fuzz/schedule.dict found/schedule $(CURDIR)/tests/fuzz/corpus/schedule

oracle: ## compare the checkers with their definitions on 200,000 random histories (ORACLE_HISTORIES, ORACLE_FIRST)
	@$(READY_TO_TEST)
	LOCKSTORM_ORACLE_HISTORIES=$(ORACLE_HISTORIES) LOCKSTORM_ORACLE_FIRST=$(ORACLE_FIRST) \
	    $(PYTHON) -m pytest -q -n 2 tests/test_checkers.py -k definitions

mutants: ## plant mistakes in the checkers, one at a time, and see which the tests find (MUTANTS=100 of them)
	@$(READY_TO_TEST)
	@$(PYTHON) -m tests.mutants --most $(MUTANTS)

matrix: ## write the tables of expected verdicts into README.md, docs/matrix.md and docs/adapters.md
	@$(READY)
	@$(PYTHON) -m harness.driver.matrix_pages
	@$(PYTHON) -m harness.driver.adapter_cells

zoo: ## play and hunt the bug zoo, record what was found, and write it into README.md and docs/zoo.md
	@$(READY)
	@$(PYTHON) -m harness.driver zoo --record
	@$(PYTHON) -m harness.driver.zoo_pages

bench: ## measure records, checks and trials; writes build/bench.json (BENCH=--quick for a short one)
	@$(READY_TO_BENCH) || $(READY)
	@$(MAKE) -s bench-programs
	@$(PYTHON) -m bench.bench $(BENCH)

soak: ## storms for SOAK_MINUTES (60), the zoo with FIXED_SCHEDULES (10000) of each lock without its bug, and the matrix MATRIX_REPEAT (20) times beside a busy core: what is left, what is accused, what flakes
	@$(READY)
	@$(PYTHON) -m harness.driver.soak --minutes $(SOAK_MINUTES) -o $(BUILD)/soak.json
	@$(PYTHON) -m harness.driver zoo --fixed-schedules $(FIXED_SCHEDULES)
	@$(PYTHON) -m harness.driver.matrix_soak --repeat $(MATRIX_REPEAT) -o $(BUILD)/matrix.json

explore-soak: ## correct locks survive SCHEDULES (1000000) schedules each without an alarm; goes on where it was stopped
	@$(READY)
	@$(PYTHON) -m harness.driver.explore_soak --schedules $(SCHEDULES) -o $(BUILD)/explore-soak

clean: ## remove what was built (installed packages stay)
	rm -rf $(BUILD)/bin $(BUILD)/lib $(BUILD)/include $(BUILD)/o $(BUILD)/tests $(BUILD)/bench $(BUILD)/fuzz $(BUILD)/asan $(BUILD)/tsan \
	    $(BUILD)/flags $(BUILD)/bench.json $(BUILD)/soak.json $(BUILD)/matrix.json

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

-include $(shell [ -d $(BUILD)/o ] && find $(BUILD)/o -name '*.d')

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

# room: the C files of these directories. rooms: the directories inside a directory.
room = $(sort $(wildcard $(addsuffix /*.c,$(1))))
rooms = $(patsubst %/,%,$(wildcard $(1)/*/))

HISTORY   = harness/history/history.c
SHARED    = harness/scheduler/clock.c harness/scheduler/hang_limit.c harness/scheduler/shared_page.c harness/scheduler/stamps.c $(HISTORY)
SCHEDULER = $(filter-out harness/scheduler/task.c $(SHARED),$(call room,harness/scheduler))
LOCKS     = $(call room,harness/locks $(call rooms,harness/locks) $(call rooms,harness/locks/zoo))
SESSIONS  = $(addprefix harness/environment/,http_session.c postgres_session.c zookeeper_session.c)
ENV       = $(call room,harness/environment) harness/scheduler/task.c
FAULTS    = $(filter-out $(PROXY_ROOM),$(call room,faults $(call rooms,faults)))
PROXY_ROOM = $(call room,faults/proxy)
LINEAR    = $(call room,checkers/linearizability checkers/formats)
CHECKS    = $(call room,checkers checkers/engine checkers/properties)
PROMISES  = $(call room,checkers/promises)

ZYGOTE  = harness/process/zygote_service.c harness/process/spawn.c
CLIENT  = $(filter-out harness/client/plugin_main.c,$(call room,harness/client)) $(ENV) $(LOCKS) $(SHARED) $(ZYGOTE)
GROUP   = $(call room,harness/client_group) $(filter-out harness/client/client_main.c,$(CLIENT)) harness/simulation/coroutine.c
STORE   = $(call room,harness/resource) $(SHARED) $(ZYGOTE)
TABLE   = harness/resource/store_table.c
PROXY   = $(PROXY_ROOM) $(SHARED) $(ZYGOTE)
CHECK   = checkers/commands/check_main.c checkers/commands/render.c $(CHECKS) harness/history/history_json.c $(HISTORY)
LINEARIZE = checkers/commands/linearize_main.c checkers/commands/render_linearizability.c $(LINEAR) harness/history/history_json.c $(HISTORY)
TOOL    = harness/history/history_main.c harness/history/history_json.c $(HISTORY)
EXPLORE = $(call room,harness/explorer harness/simulation) $(addprefix harness/client/,client.c drawn_work.c plugin.c resource_connection.c validity.c) \
          harness/resource/resource.c $(addprefix harness/environment/,env_ops.c env_reply.c redis_command.c redis_push.c) $(LOCKS) $(CHECKS) $(SHARED)
DRIVER  = $(SCHEDULER) $(call room,harness/lockstorm/native) harness/client/validity.c harness/environment/env_ops.c harness/environment/redis_command.c harness/process/spawn.c $(LOCKS) $(FAULTS) $(CHECKS) checkers/commands/render.c $(SHARED)
SUPERVISOR = $(call room,harness/supervisor) harness/scheduler/task.c $(SHARED)
EXPLORE_LIBRARY = $(call room,harness/library_search harness/library harness/library_service checkers/promises) $(filter-out harness/supervisor/supervisor_main.c,$(SUPERVISOR)) \
          harness/process/postgres_memory.c harness/simulation/node.c $(addprefix faults/proxy/,resp.c server_wait.c)
FORMATS = $(addprefix harness/library_service/,byte_queue.c grpc_format.c http_format.c postgres_format.c resp_format.c zookeeper_format.c) \
          $(addprefix faults/proxy/,resp.c server_wait.c)
LOCK_ADAPTER = $(call room,harness/lock_adapter) $(ENV) $(LOCKS) $(SHARED)
PLUGIN  = harness/client/plugin_main.c harness/client/plugin.c $(addprefix harness/environment/,env_ops.c redis_command.c) $(LOCKS)

PROGRAMS       = $(addprefix $(BUILD)/bin/,client client-group client-services store store-table proxy check linearize explore explore-library lock-adapter plugin history spawn reaper supervisor)
LIBRARY        = $(BUILD)/lib/liblockstorm.so
PRELOAD        = $(BUILD)/lib/liblockstorm-preload.so
NEAR           = $(BUILD)/lib/liblockstorm-near.so
LOOPBACK       = $(BUILD)/lib/liblockstorm-loopback.so
# The headers for plug-ins, which are compiled with -I $(BUILD)/include.
HEADERS        = $(addprefix $(BUILD)/include/harness/,client/lockstorm.h environment/env.h history/outcome.h \
                 $(addprefix locks/common/,key.h lock.h majority.h poll.h push.h script.h watchdog.h) \
                 $(addprefix locks/,redis/set_nx_px.h redis/signal_list.h zookeeper/zookeeper_node.h zookeeper/zookeeper_queue.h)) \
                 $(BUILD)/include/lockstorm.h $(BUILD)/include/harness/lockstorm.h
TEST_PROGRAMS  = $(addprefix $(BUILD)/tests/, \
                 announcements \
                 blocking_call \
                 stamps \
                 clock_readers \
                 env_limits \
                 exhaustive_options \
                 history_writers \
                 http_requests \
                 idle_processes \
                 judged_events \
                 linearizable_each \
                 linearizable_oracle \
                 linearizable_simulated \
                 lock_threads \
                 messages \
                 promises_judge \
                 quiet_phase \
                 redis_commands \
                 resp_guard \
                 search_limits \
                 session_begin \
                 shrinking \
                 stalls \
                 stop_writer \
                 novelty strategies \
                 $(SUPERVISED))
# Programs that run under the supervisor: a file each.
SUPERVISED     = $(patsubst tests/programs/%.c,%,$(wildcard tests/programs/*.c))
JUDGE          = $(BUILD)/tests/libjudge.so
BENCH_PROGRAMS = $(addprefix $(BUILD)/bench/,history_append make_history make_operations scan)
FUZZERS        = $(addprefix $(BUILD)/fuzz/,atlas_fuzz check_fuzz edn_fuzz history_fuzz history_json_fuzz library_schedule_fuzz message_format_fuzz resp_fuzz schedule_fuzz)
PASSED_CLANG   = $(patsubst %.c,$(BUILD)/lint/%.passed,$(filter %.c,$(SOURCES)))
SOURCES        = $(sort $(shell find harness checkers faults tests bench adapters/starters -name '*.[ch]'))

PYTHON = .venv/bin/python
# The launcher installs and builds what is missing; with its command "test" also the packages of tests.
READY         = ./lockstorm --version >/dev/null
READY_TO_TEST = ./lockstorm test --version >/dev/null
READY_WITH_ALL = LOCKSTORM_LEVEL=all ./lockstorm --version >/dev/null
READY_TO_BENCH = LOCKSTORM_LEVEL=bench ./lockstorm --version >/dev/null

object = $(patsubst %.c,$(BUILD)/o/%.o,$(1))

.PHONY: all deps-all build programs headers test-programs judge bench-programs fuzzers demo test nightly lint format sanitize fuzz oracle porcupine mutants mutants-short matrix schemas servers zoo libraries bench \
        soak explore-soak clean help
all: build

build: $(PROGRAMS) $(LIBRARY) $(PRELOAD) $(NEAR) $(LOOPBACK) $(HEADERS) ## compile the programs and libraries
programs: $(PROGRAMS)
headers: $(HEADERS)
test-programs: $(TEST_PROGRAMS) $(JUDGE)
judge: $(JUDGE)
bench-programs: $(BENCH_PROGRAMS)
fuzzers: $(FUZZERS)

# Loading the libraries of the other services takes ten times as long as starting a client or a store: locks on Redis use
# `client`, and a resource that is no table `store`.
$(BUILD)/bin/client: $(call object,$(filter-out $(SESSIONS),$(CLIENT))) $(patsubst %.c,$(BUILD)/o/without/%.o,$(SESSIONS))
$(BUILD)/bin/client: LIBS = -lhiredis -ljansson
$(BUILD)/bin/client-group: $(call object,$(filter-out $(SESSIONS),$(GROUP))) $(patsubst %.c,$(BUILD)/o/without/%.o,$(SESSIONS))
$(BUILD)/bin/client-group: LIBS = -lhiredis -ljansson
$(BUILD)/bin/client-services: $(call object,$(CLIENT))
$(BUILD)/bin/client-services: LIBS = -lhiredis -ljansson $(SERVICE_LIBS)
$(BUILD)/bin/store: $(call object,$(filter-out $(TABLE),$(STORE))) $(patsubst %.c,$(BUILD)/o/without/%.o,$(TABLE))
$(BUILD)/bin/store: LIBS = -lhiredis -lev
$(BUILD)/bin/store-table: $(call object,$(STORE))
$(BUILD)/bin/store-table: LIBS = -lhiredis -lev $(POSTGRES_LIBS)
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
$(BUILD)/bin/explore-library: $(call object,$(EXPLORE_LIBRARY))
$(BUILD)/bin/explore-library: LIBS = -lhiredis -ljansson -lm
# Programs that load a plug-in export to it the functions that the headers declare, and no others.
LENDERS = $(addprefix $(BUILD)/bin/,client client-group client-services explore plugin)
$(LENDERS): LENT = -Wl,--dynamic-list=harness/client/plugin.list -ldl
$(LENDERS): harness/client/plugin.list
$(BUILD)/bin/lock-adapter: $(call object,$(filter-out $(SESSIONS),$(LOCK_ADAPTER))) $(patsubst %.c,$(BUILD)/o/without/%.o,$(SESSIONS))
$(BUILD)/bin/lock-adapter: LIBS = -lhiredis -ljansson
$(BUILD)/bin/history: $(call object,$(TOOL))
$(BUILD)/bin/history: LIBS = -ljansson
$(BUILD)/bin/spawn: $(call object,harness/process/spawn_main.c harness/process/spawn.c)
$(BUILD)/bin/reaper: $(call object,harness/process/reaper_main.c harness/process/postgres_memory.c)
$(BUILD)/bin/reaper: LIBS = $(STATIC) # static: every trial starts it, and it should start fast
$(BUILD)/bin/supervisor: $(call object,$(SUPERVISOR))

$(BUILD)/tests/announcements: $(call object,tests/c/announcements.c harness/client/validity.c $(SHARED))
$(BUILD)/tests/blocking_call: $(call object,tests/c/blocking_call.c $(SCHEDULER) $(ENV) $(SHARED))
$(BUILD)/tests/blocking_call: LIBS = -lhiredis $(SERVICE_LIBS)
$(BUILD)/tests/clock_readers: $(call object,tests/c/clock_readers.c)
$(BUILD)/tests/redis_commands: $(call object,tests/c/redis_commands.c harness/environment/redis_command.c)
$(BUILD)/tests/redis_commands: LIBS = -lhiredis
$(BUILD)/tests/stamps: $(call object,tests/c/stamps.c harness/scheduler/stamps.c harness/scheduler/clock.c)
$(BUILD)/tests/env_limits: $(call object,tests/c/env_limits.c harness/environment/env_ops.c harness/environment/redis_command.c)
$(BUILD)/tests/env_limits: LIBS = -lhiredis
$(BUILD)/tests/exhaustive_options: $(call object,tests/c/exhaustive_options.c $(filter-out harness/explorer/explore_main.c,$(EXPLORE)))
$(BUILD)/tests/exhaustive_options: LIBS = -lhiredis -ljansson -lm
$(BUILD)/tests/quiet_phase: $(call object,tests/c/quiet_phase.c $(filter-out harness/explorer/explore_main.c,$(EXPLORE)))
$(BUILD)/tests/quiet_phase: LIBS = -lhiredis -ljansson -lm
$(BUILD)/tests/history_writers: $(call object,tests/c/history_writers.c $(SHARED))
$(BUILD)/tests/http_requests: $(call object,tests/c/http_requests.c $(ENV) $(SHARED))
$(BUILD)/tests/http_requests: LIBS = -lhiredis $(SERVICE_LIBS)
$(BUILD)/tests/idle_processes: $(call object,tests/c/idle_processes.c $(addprefix harness/scheduler/,quiescence.c hang_limit.c clock.c))
$(BUILD)/tests/judged_events: $(call object,tests/c/judged_events.c $(call room,checkers/engine) $(HISTORY))
$(BUILD)/tests/linearizable_each: $(call object,tests/c/linearizable_each.c $(LINEAR) harness/history/history_json.c $(HISTORY))
$(BUILD)/tests/linearizable_each: LIBS = -ljansson
$(BUILD)/tests/linearizable_oracle: $(call object,tests/c/linearizable_oracle.c $(LINEAR) harness/history/history_json.c $(HISTORY))
$(BUILD)/tests/linearizable_oracle: LIBS = -ljansson
$(BUILD)/tests/linearizable_simulated: $(call object,tests/c/linearizable_simulated.c $(LINEAR) harness/history/history_json.c $(HISTORY))
$(BUILD)/tests/linearizable_simulated: LIBS = -ljansson
$(BUILD)/tests/search_limits: $(call object,tests/c/search_limits.c $(LINEAR) harness/history/history_json.c $(HISTORY))
$(BUILD)/tests/search_limits: LIBS = -ljansson
$(BUILD)/tests/lock_threads: $(call object,tests/c/lock_threads.c $(ENV) $(LOCKS) $(SHARED))
$(BUILD)/tests/lock_threads: LIBS = -lhiredis -ljansson $(SERVICE_LIBS)
$(BUILD)/tests/messages: $(call object,tests/c/messages.c $(FORMATS))
$(BUILD)/tests/promises_judge: $(call object,tests/c/promises_judge.c $(PROMISES))
$(BUILD)/tests/resp_guard: $(call object,tests/c/resp_guard.c faults/proxy/resp.c)
$(BUILD)/tests/session_begin: $(call object,tests/c/session_begin.c $(ENV) $(SHARED))
$(BUILD)/tests/session_begin: LIBS = -lhiredis $(SERVICE_LIBS)
$(BUILD)/tests/shrinking: $(call object,tests/c/shrinking.c harness/explorer/shrink.c harness/explorer/schedule.c)
$(BUILD)/tests/novelty: $(call object,tests/c/novelty.c $(addprefix harness/explorer/,novelty.c schedule.c situations.c strategy.c))
$(BUILD)/tests/strategies: $(call object,tests/c/strategies.c harness/explorer/strategy.c harness/explorer/situations.c)
$(BUILD)/tests/stalls: $(call object,tests/c/stalls.c harness/scheduler/stall_sentinel.c)
$(BUILD)/tests/stop_writer: $(call object,tests/c/stop_writer.c $(SCHEDULER) $(SHARED))
$(BUILD)/tests/stop_writer: LIBS = -lhiredis

$(addprefix $(BUILD)/tests/,$(SUPERVISED)): $(BUILD)/tests/%: $(BUILD)/o/tests/programs/%.o

$(BUILD)/bench/history_append: $(call object,bench/history_append.c $(SHARED))
$(BUILD)/bench/make_history: $(call object,bench/make_history.c $(HISTORY))
$(BUILD)/bench/make_operations: $(call object,bench/make_operations.c)
$(BUILD)/bench/scan: $(call object,bench/scan.c)

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

$(PROGRAMS) $(TEST_PROGRAMS) $(BENCH_PROGRAMS):
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(LIBS) $(LENT)

$(filter-out $(BUILD)/include/lockstorm.h $(BUILD)/include/harness/lockstorm.h,$(HEADERS)): $(BUILD)/include/%: %
	@mkdir -p $(@D)
	cp $< $@
# The header that a plug-in includes, and its path before 0.2.
$(BUILD)/include/lockstorm.h:
	@mkdir -p $(@D)
	echo '#include "harness/client/lockstorm.h"' >$@
$(BUILD)/include/harness/lockstorm.h: Makefile
	@mkdir -p $(@D)
	printf '%s\n' '#pragma message "include \"lockstorm.h\" instead of \"harness/lockstorm.h\""' '#include "harness/client/lockstorm.h"' >$@

$(LIBRARY): $(call object,$(DRIVER))
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -o $@ $^ -lhiredis -ljansson -lm

# Without EXTRA: servers load it, and they are built without a sanitizer.
$(PRELOAD): harness/process/preload/preload_clock.c harness/process/preload/zygote.c $(ZYGOTE) harness/process/preload/clock_page.h \
            harness/process/preload/preload.h harness/process/spawn.h harness/process/zygote_service.h
	@mkdir -p $(@D)
	$(CC) $(STANDARD) -O2 -fPIC $(WARNINGS) -shared -o $@ $(filter %.c,$^)

$(NEAR): harness/process/preload/near.c
$(LOOPBACK): harness/process/preload/loopback.c
$(NEAR) $(LOOPBACK):
	@mkdir -p $(@D)
	$(CC) $(STANDARD) -O2 -fPIC $(WARNINGS) -shared -o $@ $<

$(JUDGE): $(call object,tests/c/judge_records.c $(filter-out checkers/commands/check_main.c,$(CHECK)))
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -o $@ $^ -ljansson -lm

HISTORY_READERS = harness/history/history.c harness/history/history.h harness/history/history_json.c harness/history/history_json.h tests/fuzz/image.h
$(BUILD)/fuzz/history_fuzz $(BUILD)/fuzz/history_json_fuzz: $(HISTORY_READERS)
$(BUILD)/fuzz/check_fuzz: checkers/commands/render.c $(CHECKS) $(HISTORY_READERS) $(wildcard checkers/*/*.h)
$(BUILD)/fuzz/resp_fuzz: $(foreach part,resp reply_matcher rule,faults/proxy/$(part).c faults/proxy/$(part).h)
$(BUILD)/fuzz/atlas_fuzz $(BUILD)/fuzz/edn_fuzz: $(LINEAR) $(HISTORY_READERS) $(wildcard checkers/*/*.h) tests/fuzz/outside.h
$(BUILD)/fuzz/library_schedule_fuzz: harness/library_search/library_schedule.c harness/library/workload.c harness/library/library_offer.c $(wildcard harness/library/*.h harness/library_search/*.h checkers/promises/*.h)
$(BUILD)/fuzz/message_format_fuzz: $(FORMATS) $(wildcard harness/library_service/*.h)
$(BUILD)/fuzz/schedule_fuzz: harness/explorer/schedule.c $(wildcard harness/explorer/*.h harness/simulation/*.h)
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
	@mkdir -p $(addprefix $(BUILD)/fuzz/found/,atlas check edn history history_json library_schedule resp schedule)
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
	cd $(BUILD)/fuzz && ./library_schedule_fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=256 -print_final_stats=1 \
	    found/library_schedule $(CURDIR)/tests/fuzz/corpus/library_schedule

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

matrix: ## write the tables of expected verdicts into README.md, docs/matrix.md and docs/adapters.md
	@$(READY)
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.matrix.matrix_pages
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.conformance.adapter_cells

schemas: ## write docs/results.schema.json, the schema of the commands' JSON, from the types of harness/lockstorm/results
	@$(READY)
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.results.schemas

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
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.soak.storm_soak --minutes $(SOAK_MINUTES) -o $(BUILD)/soak.json
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm zoo --fixed-schedules $(FIXED_SCHEDULES)
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.soak.matrix_soak --repeat $(MATRIX_REPEAT) -o $(BUILD)/matrix.json

explore-soak: ## search SCHEDULES (1000000) schedules of each correct lock for a false alarm; resumes an interrupted search
	@$(READY)
	@PYTHONPATH=harness:. $(PYTHON) -m lockstorm.soak.explore_soak --schedules $(SCHEDULES) -o $(BUILD)/explore-soak

clean: ## remove the results of builds; installed packages stay
	rm -rf $(BUILD)/bin $(BUILD)/lib $(BUILD)/include $(BUILD)/o $(BUILD)/tests $(BUILD)/bench $(BUILD)/fuzz $(BUILD)/asan $(BUILD)/tsan $(BUILD)/lint \
	    $(BUILD)/flags $(BUILD)/bench.json $(BUILD)/soak.json $(BUILD)/matrix.json

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

-include $(shell find $(wildcard $(BUILD)/o $(BUILD)/lint) /dev/null -name '*.d')

# `make help` lists what there is. Variables: CC, BUILD (where results go), EXTRA (more compiler flags).
CC ?= gcc
ifeq ($(origin CC),default)
CC = gcc
endif
BUILD ?= build
EXTRA ?=

WARNINGS = -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wconversion -Wvla -Wformat=2 \
           -Wpointer-arith -Wcast-qual -Wwrite-strings
CFLAGS = -std=c11 -D_GNU_SOURCE -I. -O2 -g -fPIC -fvisibility=default -pthread $(WARNINGS) $(EXTRA)

HISTORY = harness/history.c
STAGE   = harness/clock.c harness/stage.c
LOCKS   = $(sort $(wildcard harness/locks/*.c))
ENV     = harness/env.c harness/env_live.c harness/strand.c
FAULTS  = $(sort $(wildcard faults/*.c))
CHECKS  = $(sort $(wildcard checkers/*.c))

CLIENT  = harness/client.c $(ENV) $(LOCKS) $(STAGE) $(HISTORY)
STORE   = harness/store.c $(STAGE) $(HISTORY)
CHECK   = $(CHECKS) harness/history_json.c $(HISTORY)
TOOL    = harness/history_main.c harness/history_json.c $(HISTORY)
DRIVER  = harness/conductor.c harness/driver/describe.c harness/env.c $(LOCKS) $(FAULTS) $(STAGE) $(HISTORY)

PROGRAMS = $(addprefix $(BUILD)/bin/,client store check history leash warden)
LIBRARY  = $(BUILD)/lib/liblockstorm.so

object = $(patsubst %.c,$(BUILD)/o/%.o,$(1))

.PHONY: all build demo test lint format sanitize fuzz bench clean help
all: build

build: $(PROGRAMS) $(LIBRARY) ## compile everything that runs, breaks or judges a lock

$(BUILD)/bin/client: $(call object,$(CLIENT))
$(BUILD)/bin/client: LIBS = -lhiredis
$(BUILD)/bin/store: $(call object,$(STORE))
$(BUILD)/bin/store: LIBS = -lhiredis -lev
$(BUILD)/bin/check: $(call object,$(CHECK))
$(BUILD)/bin/check: LIBS = -ljansson
$(BUILD)/bin/history: $(call object,$(TOOL))
$(BUILD)/bin/history: LIBS = -ljansson
$(BUILD)/bin/leash: $(call object,harness/leash.c)
$(BUILD)/bin/warden: $(call object,harness/warden.c)
$(PROGRAMS):
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $^ $(LIBS)

$(LIBRARY): $(call object,$(DRIVER))
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -o $@ $^ -lhiredis -ljansson

$(BUILD)/o/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

# Other flags or another compiler: everything is compiled again.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CFLAGS)' | cmp -s - $@ || echo '$(CC) $(CFLAGS)' >$@
.PHONY: FORCE
FORCE:

-include $(shell [ -d $(BUILD)/o ] && find $(BUILD)/o -name '*.d')

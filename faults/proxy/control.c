#include "faults/proxy/control.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "faults/proxy/link.h"
#include "faults/proxy/rule_set.h"
#include "harness/resp_service/resp_service.h"

enum { NAME_MAX_BYTES = 200, ARGUMENTS_MAX = 64 };

/* A caller that sent SETTLE waits, and so do its requests behind it. The idle watcher has the lowest priority: it runs
 * when polling all sockets has found nothing to read, to write or to accept. */
struct control {
    struct resp_service service; /* first */
    struct proxy *proxy;
    ev_idle idle;
};

struct control_caller {
    struct resp_caller base; /* first */
    bool wants_targets;      /* it waits after SETTLE TARGETS */
};

/* A command that is run: its arguments, each with a zero behind it, and who is answered. */
struct command_call {
    struct control *control;
    struct proxy *proxy;
    const struct span *arguments;
    size_t count;
    struct control_caller *caller;
    struct reply_text *reply; /* the caller's */
};

#define WORD(span) (int)((span).length < 60 ? (span).length : 60), (span).bytes

/* Names and patterns become C strings and texts of the history. */
static bool commands_check_name(const struct command_call *call, size_t argument) {
    struct span word = call->arguments[argument];
    if (word.length && word.length <= NAME_MAX_BYTES && !memchr(word.bytes, '\0', word.length)) return true;
    reply_error(call->reply, "a name or pattern has 1 to %d bytes, none of them zero", NAME_MAX_BYTES);
    return false;
}

/* --- LINK --- */

static struct proxy_link *find_link(const struct command_call *call) {
    struct proxy_link *link = call->proxy->links;
    while (link && !span_is(call->arguments[0], link->name)) link = link->next;
    return link;
}

static bool read_link_option(struct span word, enum link_option *option) {
    static const char *const names[] = {
        [LINK_PLAIN] = "PLAIN",     [LINK_PATIENT] = "PATIENT", [LINK_PLAIN_STEPPED] = "PLAIN-STEPPED",
        [LINK_STEPPED] = "STEPPED", [LINK_TIMED] = "TIMED",
    };
    for (size_t each = LINK_PLAIN; each < sizeof names / sizeof *names; each++) {
        if (!span_is_word(word, names[each])) continue;
        *option = (enum link_option)each;
        return true;
    }
    return false;
}

/* The argument as an address; false with the answer given. */
static bool read_address(const struct command_call *call, size_t argument, struct address *address) {
    struct address_error error;
    struct span text = call->arguments[argument];
    if (address_parse(text.bytes, text.length, address, &error)) return true;
    reply_error(call->reply, "%s", error.text);
    return false;
}

static void link_add_command(struct command_call *call) {
    struct address listen, target;
    struct address_error error;
    struct span name = call->arguments[0];
    enum link_option option = LINK_RESP;
    if (call->count == 4 && !read_link_option(call->arguments[3], &option))
        return reply_error(
            call->reply,
            "'%.*s' is no option of LINK ADD: the options are PATIENT, PLAIN, PLAIN-STEPPED, STEPPED and TIMED",
            WORD(call->arguments[3]));
    if (!commands_check_name(call, 0)) return;
    if (find_link(call))
        return reply_error(call->reply, "the link '%.*s' exists already: LINK REMOVE it first, or LINK TARGET it",
                           WORD(name));
    if (!read_address(call, 1, &listen) || !read_address(call, 2, &target)) return;
    const struct proxy_link *link = link_add(call->proxy, name.bytes, &listen, &target, option, &error);
    if (link) reply_bulk(call->reply, link->listen.text);
    else reply_error(call->reply, "%s", error.text);
}

static void link_target_command(struct command_call *call) {
    struct address target;
    size_t count = 0;
    if (!commands_check_name(call, 0) || !read_address(call, 1, &target)) return;
    for (struct proxy_link *link = call->proxy->links; link; link = link->next) {
        if (fnmatch(call->arguments[0].bytes, link->name, 0) != 0) continue;
        link->target = target;
        link_close_connections(link);
        count++;
    }
    reply_write(call->reply, ":%zu\r\n", count);
}

static void link_close_command(struct command_call *call) {
    size_t closed = 0;
    if (!commands_check_name(call, 0)) return;
    for (struct proxy_link *link = call->proxy->links; link; link = link->next)
        if (fnmatch(call->arguments[0].bytes, link->name, 0) == 0) closed += link_close_connections(link);
    reply_write(call->reply, ":%zu\r\n", closed);
}

static void link_remove_command(struct command_call *call) {
    struct proxy_link *link = find_link(call);
    if (link) link_remove(link);
    reply_write(call->reply, ":%d\r\n", link != NULL);
}

static size_t count_links(const struct proxy *proxy) {
    size_t count = 0;
    for (const struct proxy_link *link = proxy->links; link; link = link->next) count++;
    return count;
}

static void link_list_command(struct command_call *call) {
    struct reply_text *reply = call->reply;
    reply_write(reply, "*%zu\r\n", count_links(call->proxy));
    for (const struct proxy_link *link = call->proxy->links; link; link = link->next) {
        reply_write(reply, "*18\r\n");
        reply_bulk(reply, "name"), reply_bulk(reply, link->name);
        reply_bulk(reply, "listen"), reply_bulk(reply, link->listen.text);
        reply_bulk(reply, "target"), reply_bulk(reply, link->target.text);
        reply_number(reply, "connections", link->connection_count);
        reply_number(reply, "requests", link->requests);
        reply_number(reply, "replies", link->replies);
        reply_number(reply, "pushes", link->pushes);
        reply_number(reply, "bytes-to-server", link->bytes[TO_SERVER]);
        reply_number(reply, "bytes-to-client", link->bytes[TO_CLIENT]);
    }
}

/* --- RULE --- */

static void rule_add_command(struct command_call *call) {
    struct history_error error;
    if (!commands_check_name(call, 0) || !commands_check_name(call, 1)) return;
    const struct rule *before = rule_set_find(call->proxy, call->arguments[0]);
    if (before && before->active)
        return reply_error(call->reply, "the rule '%.*s' exists already: RULE REMOVE it first",
                           WORD(call->arguments[0]));
    struct rule *rule = rule_parse(call->arguments, call->count, &error);
    if (!rule) return reply_error(call->reply, "%s", error.text);
    rule_set_add(call->proxy, rule);
    reply_write(call->reply, "+OK\r\n");
}

static void rule_remove_command(struct command_call *call) {
    struct rule *rule = rule_set_find(call->proxy, call->arguments[0]);
    bool active = rule && rule->active;
    if (active) rule_set_remove(call->proxy, rule);
    reply_write(call->reply, ":%d\r\n", active);
}

static void reply_rule(struct reply_text *reply, const struct rule *rule) {
    reply_write(reply, "*14\r\n");
    reply_bulk(reply, "name"), reply_bulk(reply, rule->name);
    reply_number(reply, "fired", rule->fired);
    reply_number(reply, "matched", rule->matched);
    reply_number(reply, "held", rule->held);
    reply_number(reply, "released", rule->released);
    reply_number(reply, "swallowed", rule->swallowed_bytes);
    reply_number(reply, "active", rule->active);
}

static void rule_list_command(struct command_call *call) {
    size_t count = 0;
    for (const struct rule *rule = call->proxy->rules; rule; rule = rule->next) count++;
    reply_write(call->reply, "*%zu\r\n", count);
    for (const struct rule *rule = call->proxy->rules; rule; rule = rule->next) reply_rule(call->reply, rule);
}

static struct rule *known_rule(const struct command_call *call) {
    struct rule *rule = rule_set_find(call->proxy, call->arguments[0]);
    if (!rule) reply_error(call->reply, "there is no rule '%.*s': RULE LIST shows all rules", WORD(call->arguments[0]));
    return rule;
}

static void rule_stat_command(struct command_call *call) {
    const struct rule *rule = known_rule(call);
    if (rule) reply_rule(call->reply, rule);
}

static void rule_release_command(struct command_call *call) {
    int64_t most = INT64_MAX;
    if (call->count == 2 && !rule_number(call->arguments[1], 1, &most))
        return reply_error(call->reply, "'%.*s' is no number of messages: RULE RELEASE name [n]",
                           WORD(call->arguments[1]));
    struct rule *rule = known_rule(call);
    if (!rule) return;
    if (rule->action != RULE_HOLD)
        reply_error(call->reply, "rule '%.*s' holds nothing: its action is no hold", WORD(call->arguments[0]));
    else reply_write(call->reply, ":%zu\r\n", rule_set_release(call->proxy, rule, (size_t)most));
}

/* --- the rest --- */

static void settle_command(struct command_call *call) {
    bool targets = call->count == 1;
    if (targets && !span_is_word(call->arguments[0], "TARGETS"))
        return reply_error(call->reply, "'%.*s' is no option of SETTLE: the only one is TARGETS",
                           WORD(call->arguments[0]));
    call->caller->wants_targets = targets;
    call->caller->base.waits = true;
    ev_idle_start(call->proxy->loop, &call->control->idle);
}

static void stats_command(struct command_call *call) {
    const struct proxy *proxy = call->proxy;
    size_t rules = 0;
    for (const struct rule *rule = proxy->rules; rule; rule = rule->next) rules += rule->active;
    reply_write(call->reply, "*10\r\n");
    reply_number(call->reply, "connections", proxy->connections);
    reply_number(call->reply, "links", count_links(proxy));
    reply_number(call->reply, "rules", rules);
    reply_number(call->reply, "memory", proxy->memory_bytes);
    reply_number(call->reply, "opaque", proxy->opaque);
}

static void ping_command(struct command_call *call) {
    reply_write(call->reply, "+PONG\r\n");
}

static void quit_command(struct command_call *call) {
    reply_write(call->reply, "+OK\r\n");
    call->caller->base.closing = true;
}

static void shutdown_command(struct command_call *call) {
    quit_command(call);
    ev_break(call->proxy->loop, EVBREAK_ALL);
}

static const struct command {
    const char *name, *subcommand; /* subcommand: or NULL */
    size_t least, most;            /* number of arguments */
    void (*run)(struct command_call *call);
    const char *usage;
} COMMANDS[] = {
    {"LINK", "ADD", 3, 4, link_add_command, "LINK ADD name listen target [PATIENT|PLAIN|PLAIN-STEPPED|STEPPED|TIMED]"},
    {"LINK", "CLOSE", 1, 1, link_close_command, "LINK CLOSE pattern"},
    {"LINK", "LIST", 0, 0, link_list_command, "LINK LIST"},
    {"LINK", "REMOVE", 1, 1, link_remove_command, "LINK REMOVE name"},
    {"LINK", "TARGET", 2, 2, link_target_command, "LINK TARGET pattern target"},
    {"PING", NULL, 0, 0, ping_command, "PING"},
    {"QUIT", NULL, 0, 0, quit_command, "QUIT"},
    {"RULE", "ADD", 4, SIZE_MAX, rule_add_command, "RULE ADD name pattern to-server|to-client|both action [options]"},
    {"RULE", "LIST", 0, 0, rule_list_command, "RULE LIST"},
    {"RULE", "RELEASE", 1, 2, rule_release_command, "RULE RELEASE name [n]"},
    {"RULE", "REMOVE", 1, 1, rule_remove_command, "RULE REMOVE name"},
    {"RULE", "STAT", 1, 1, rule_stat_command, "RULE STAT name"},
    {"SETTLE", NULL, 0, 1, settle_command, "SETTLE [TARGETS]"},
    {"SHUTDOWN", NULL, 0, 0, shutdown_command, "SHUTDOWN"},
    {"STATS", NULL, 0, 0, stats_command, "STATS"},
};

/* Runs one command: `count` words, at least one, each with a zero behind it. */
static void command_run(struct command_call call, const struct span *words, size_t count) {
    for (size_t each = 0; each < sizeof COMMANDS / sizeof COMMANDS[0]; each++) {
        const struct command *command = &COMMANDS[each];
        size_t used = command->subcommand ? 2 : 1;
        if (!span_is_word(words[0], command->name)) continue;
        if (command->subcommand && (count < 2 || !span_is_word(words[1], command->subcommand))) continue;
        call.arguments = words + used;
        call.count = count - used;
        if (call.count >= command->least && call.count <= command->most) command->run(&call);
        else reply_error(call.reply, "usage: %s", command->usage);
        return;
    }
    reply_error(call.reply,
                "unknown command '%.*s': the commands are LINK ADD|TARGET|CLOSE|REMOVE|LIST, RULE "
                "ADD|REMOVE|RELEASE|LIST|STAT, SETTLE, STATS, PING, QUIT and SHUTDOWN",
                WORD(words[0]));
}

/* --- requests --- */

static bool is_request(const redisReply *request) {
    if (request->type != REDIS_REPLY_ARRAY || request->elements == 0 || request->elements > ARGUMENTS_MAX) return false;
    for (size_t each = 0; each < request->elements; each++)
        if (request->element[each]->type != REDIS_REPLY_STRING) return false;
    return true;
}

static void control_serve(struct resp_caller *caller, const redisReply *request) {
    struct control *control = (struct control *)caller->service;
    struct span arguments[ARGUMENTS_MAX];
    if (!is_request(request)) {
        reply_error(&caller->reply, "a request is an array of 1 to %d strings", ARGUMENTS_MAX);
        return;
    }
    for (size_t each = 0; each < request->elements; each++)
        arguments[each] = (struct span){request->element[each]->str, request->element[each]->len};
    struct command_call call = {.control = control,
                                .proxy = control->proxy,
                                .caller = (struct control_caller *)caller,
                                .reply = &caller->reply};
    command_run(call, arguments, request->elements);
}

static void reply_settled(struct proxy *proxy, const struct control_caller *caller, struct reply_text *reply) {
    int64_t next_ns = timer_heap_next_ns(&proxy->timers);
    size_t active = 0;
    for (struct proxy_link *link = proxy->links; link; link = link->next) active += link->activity != TARGET_IDLE;
    if (caller->wants_targets) reply_write(reply, "*%zu\r\n", 1 + 2 * active);
    reply_write(reply, ":%lld\r\n", next_ns == TIMER_HEAP_NEVER ? -1LL : (long long)next_ns);
    for (struct proxy_link *link = proxy->links; caller->wants_targets && link; link = link->next) {
        if (link->activity == TARGET_IDLE) continue;
        reply_bulk(reply, link->target.text);
        reply_write(reply, ":%d\r\n", link->activity == TARGET_HAS_CONNECTION);
        link->activity = TARGET_IDLE;
    }
}

/* Nothing is left to read or write. What has become due is delivered first, and then the sockets are polled again. */
static void on_idle(struct ev_loop *loop, ev_idle *idle, int events) {
    struct control *control = idle->data;
    struct proxy *proxy = control->proxy;
    (void)events;
    if (link_step_all(proxy) || timer_heap_deliver(&proxy->timers, proxy_now_ns(proxy))) return;
    ev_idle_stop(loop, idle);
    for (struct resp_caller *next, *each = control->service.callers; each; each = next) {
        next = each->next;
        if (!each->waits) continue;
        each->waits = false;
        reply_settled(proxy, (struct control_caller *)each, &each->reply);
        resp_caller_go_on(each);
    }
}

struct control *control_open(struct proxy *proxy, const char *path, struct address_error *error) {
    struct control *control = calloc(1, sizeof *control);
    if (!control) abort();
    control->proxy = proxy;
    control->service = (struct resp_service){
        .loop = proxy->loop, .caller_size = sizeof(struct control_caller), .serve = control_serve};
    ev_idle_init(&control->idle, on_idle);
    ev_set_priority(&control->idle, EV_MINPRI);
    control->idle.data = control;
    if (resp_service_open(&control->service, path, error)) return control;
    free(control);
    return NULL;
}

void control_close(struct control *control) {
    ev_idle_stop(control->proxy->loop, &control->idle);
    resp_service_close(&control->service);
    free(control);
}

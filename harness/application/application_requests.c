/* Requests to instances: how each is sent, what its answer says, and what is drawn for a schedule. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/application/application.h"
#include "harness/scheduler/clock.h"
#include "harness/search/mix.h"

/* Limits of virtual time: an instance that starts, and one request before a schedule. */
static const int64_t START_LIMIT_MS = 300000, WARM_UP_LIMIT_MS = 60000, ASK_AGAIN_MS = 100;
enum { FAILED_FROM = 500, REFUSED_FROM = 400, ANSWERED_FROM = 200, BODY_SHOWN = 40, SIGNALS_FROM = 128 };

/* --- the text of a request --- */

struct text_writer {
    char *text;
    size_t length, room;
};

static void bytes_add(struct text_writer *writer, const char *bytes, size_t length) {
    if (writer->length + length >= writer->room) length = writer->room - writer->length - 1;
    memcpy(writer->text + writer->length, bytes, length);
    writer->length += length;
    writer->text[writer->length] = '\0';
}

void application_uuid_write(uint64_t number, char uuid[UUID_TEXT]) {
    uint64_t high = mix(0x6c6f636b73746f72u, number), low = mix(high, number);
    snprintf(uuid, UUID_TEXT, "%08x-%04x-4%03x-8%03x-%012llx", (unsigned)(high >> 32), (unsigned)(high >> 16) & 0xffff,
             (unsigned)high & 0xfff, (unsigned)(low >> 48) & 0xfff, (unsigned long long)(low & 0xffffffffffff));
}

/* Adds the text with its places filled in. */
static void filled_add(struct text_writer *writer, const char *text, int number) {
    char value[UUID_TEXT];
    while (*text) {
        size_t plain = strcspn(text, "{");
        bytes_add(writer, text, plain);
        text += plain;
        value[0] = '\0';
        if (strncmp(text, "{number}", 8) == 0) snprintf(value, sizeof value, "%d", number), text += 8;
        else if (strncmp(text, "{uuid}", 6) == 0) application_uuid_write((uint64_t)number, value), text += 6;
        else if (*text) bytes_add(writer, text++, 1);
        bytes_add(writer, value, strlen(value));
    }
}

static struct span request_write(const struct application_request *request, int port, int number) {
    static char text[REQUEST_TEXT], body[REQUEST_TEXT];
    char line[80];
    struct text_writer content = {body, 0, sizeof body}, all = {text, 0, sizeof text};
    body[0] = '\0';
    filled_add(&content, request->body, number);
    bytes_add(&all, request->method, strlen(request->method));
    bytes_add(&all, " ", 1);
    filled_add(&all, request->target, number);
    int length = snprintf(line, sizeof line, " HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n", port);
    bytes_add(&all, line, (size_t)length);
    bool has_body = content.length > 0 || strcmp(request->method, "GET") != 0;
    length = has_body ? snprintf(line, sizeof line, "Content-Length: %zu\r\n", content.length) : 0;
    bytes_add(&all, line, (size_t)length);
    filled_add(&all, request->head, number);
    bytes_add(&all, "\r\n", 2);
    bytes_add(&all, body, content.length);
    return (struct span){text, all.length};
}

/* --- what is no call of a schedule --- */

static bool control_begin(struct library_world *world, int number, struct span request) {
    struct application *application = application_of(world);
    application->control_answers[number].status = 0;
    application->control_ended[number] = false;
    http_exchange_close(&application->control[number]);
    bool begun = http_exchange_begin(&application->control[number], application->ports[number], request);
    world->clients[number].control = begun;
    world->clients[number].program.stirred = true;
    return begun;
}

/* Lets everything happen until the control request is answered. The status; 0: it was not. */
static int control_await(struct library_world *world, int number, int64_t limit_ms) {
    bool answered = library_drain(world, number, limit_ms);
    http_exchange_close(&application_of(world)->control[number]);
    world->clients[number].control = 0;
    return answered ? application_of(world)->control_answers[number].status : 0;
}

/* --- an instance begins --- */

/* Nothing else than its servers and the other instances: what it would find there lives by another clock. */
void application_connect(struct library_world *world, int number) {
    const struct application *application = application_of(world);
    struct hosted_program *program = &world->clients[number].program;
    program->supervisor->is_closed = true;
    for (int each = 0; each < application->instances; each++)
        hosted_lead(program, (uint16_t)application->ports[each], (uint16_t)application->ports[each]);
}

static bool instance_is_ready(struct library_world *world, int number) {
    struct application *application = application_of(world);
    const struct application_request look = {.method = "GET", .target = application->ready, .head = "", .body = ""};
    if (!application->ready[0]) {
        struct http_exchange probe;
        bool listens = http_exchange_begin(&probe, application->ports[number], (struct span){"", 0});
        http_exchange_close(&probe);
        world->clients[number].program.stirred = true;
        return listens;
    }
    if (!control_begin(world, number, request_write(&look, application->ports[number], 0))) return false;
    int status = control_await(world, number, WARM_UP_LIMIT_MS);
    return status >= ANSWERED_FROM && status < REFUSED_FROM;
}

/* "; it wanted to connect to ...": what an instance that does not work has lacked, or nothing. */
static const char *what_it_lacked(const struct library_world *world, int number) {
    static char text[STRANGER_TEXT];
    hosted_stranger_describe(&world->clients[number].program, text);
    return text;
}

/* Instances send the text of a script only to a server that lacks it, and the recogniser has to see it. */
static void scripts_forget(struct library_world *world) {
    for (int number = 0; number < LIBRARY_CLIENTS; number++)
        if (world->clients[number].runs) return;
    for (int node = 0; node < world->settings.nodes; node++)
        if (world->servers[node].kind == &REDIS_KIND) node_scripts_forget(&world->servers[node].node);
}

bool application_begin(struct library_world *world, int number) {
    const struct application *application = application_of(world);
    int64_t until_ns = shared_page_mono_ns(world->page) + START_LIMIT_MS * CLOCK_NS_PER_MS;
    scripts_forget(world);
    if (!library_doors_open(world, number) || !library_program_start(world, number, world->settings.seed)) return false;
    world->clients[number].has_played = false;
    while (!instance_is_ready(world, number)) {
        int64_t now_ns = shared_page_mono_ns(world->page);
        if (world->search.reason[0] || !library_drain_until(world, now_ns + ASK_AGAIN_MS * CLOCK_NS_PER_MS, false))
            return false;
        if (shared_page_mono_ns(world->page) > until_ns)
            return library_give_up(world, "instance %d is not ready after %d s of its time: %s%s on port %d%s",
                                   number + 1, (int)(START_LIMIT_MS / 1000),
                                   application->ready[0] ? "no answer below 400 to GET " : "it does not listen",
                                   application->ready, application->ports[number], what_it_lacked(world, number));
    }
    return library_drain_until(world, shared_page_mono_ns(world->page), false);
}

/* --- the data before a schedule --- */

static bool resets_make(struct library_world *world) {
    const struct application *application = application_of(world);
    char reason[SERVER_REASON];
    for (int each = 0; each < application->reset_count; each++) {
        const struct application_reset *reset = &application->resets[each];
        struct library_server *server = &world->servers[reset->node];
        if (!server->kind->ask(server, reset->text, NULL, NULL, reason))
            return application_is_wrong(world, "reset: '%.80s': %s", reset->text, reason);
    }
    return true;
}

static bool data_reset(struct library_world *world) {
    library_servers_flush(world);
    application_of(world)->asked = 0;
    application_models_begin(application_of(world));
    return resets_make(world);
}

/* The work under a lock lasts as long as its lease, at most; what a request does besides takes no longer. */
static int64_t warm_up_limit_ms(const struct library_world *world) {
    int64_t leases_ms = 2 * world->settings.lease_ms;
    return leases_ms > WARM_UP_LIMIT_MS ? leases_ms : WARM_UP_LIMIT_MS;
}

static bool request_alone_failed(struct library_world *world, int number, const char *name, int status) {
    const char *lacked = what_it_lacked(world, number);
    if (application_of(world)->control_ended[number])
        return library_give_up(world,
                               "instance %d ended the connection of the request %s, alone, without an answer in "
                               "HTTP/1.1%s",
                               number + 1, name, lacked);
    if (status == 0)
        return library_give_up(world, "instance %d did not answer the request %s, alone, within %d s of its time%s",
                               number + 1, name, (int)(warm_up_limit_ms(world) / 1000), lacked);
    return library_give_up(world, "instance %d answered the request %s, alone, with %d%s%s", number + 1, name, status,
                           status < ANSWERED_FROM ? ": what follows is not HTTP/1.1, and not followed" : "", lacked);
}

/* A server is told the text of the request. False: `reason`, of SERVER_REASON bytes. */
static bool server_tell(struct library_world *world, const struct application_request *request, char *reason) {
    static char text[REQUEST_TEXT];
    struct text_writer writer = {text, 0, sizeof text};
    struct library_server *server = &world->servers[request->node];
    filled_add(&writer, request->text, application_of(world)->asked);
    return server->kind->ask(server, text, NULL, NULL, reason);
}

/* What requests have begun goes on before the data are brought back: in a schedule nobody has to do with it. */
static bool alone_end(struct library_world *world) {
    int64_t lasts_ns = application_of(world)->lasts_ms * CLOCK_NS_PER_MS;
    if (lasts_ns > 0 && !library_drain_until(world, shared_page_mono_ns(world->page) + lasts_ns, false)) return false;
    return data_reset(world);
}

/* Requests before the first schedule open connections and load code, so that later schedules are like it. */
static bool instance_warm_up(struct library_world *world, int number) {
    struct application *application = application_of(world);
    for (int each = 0; each < application->request_count; each++) {
        const struct application_request *request = &application->requests[each];
        if (request->way != REQUEST_HTTP) continue;
        struct span text = request_write(request, application->ports[number], ++application->asked);
        application_wire_asked(&application->wire, number, 0, request->name);
        if (!control_begin(world, number, text))
            return library_give_up(world, "instance %d takes no connection on port %d", number + 1,
                                   application->ports[number]);
        int status = control_await(world, number, warm_up_limit_ms(world));
        application_wire_answered(&application->wire, number, 0);
        if (world->search.reason[0]) return false;
        if (status < ANSWERED_FROM || status >= FAILED_FROM)
            return request_alone_failed(world, number, request->name, status);
        if (status < REFUSED_FROM && !application_models_try(world, request, &application->control_answers[number]))
            return false;
        if (!alone_end(world)) return false;
    }
    return true;
}

/* Any instance may take what a server was told. */
static bool servers_warm_up(struct library_world *world) {
    struct application *application = application_of(world);
    char reason[SERVER_REASON];
    for (int each = 0; each < application->request_count; each++) {
        const struct application_request *request = &application->requests[each];
        if (request->way != REQUEST_SERVER) continue;
        application->asked++;
        if (!server_tell(world, request, reason))
            return application_is_wrong(world, "the request %.40s: '%.60s': %.100s", request->name, request->text,
                                        reason);
        if (!alone_end(world)) return false;
    }
    return true;
}

/* Programs of their own have a place behind the instances. */
static bool jobs_warm_up(struct library_world *world) {
    struct application *application = application_of(world);
    int number = application->instances;
    for (int each = 0; each < application->request_count; each++) {
        const struct application_request *request = &application->requests[each];
        if (request->way != REQUEST_COMMAND) continue;
        application_wire_asked(&application->wire, number, 0, request->name);
        if (!application_job_start(world, number, request, ++application->asked)) return false;
        world->clients[number].control = 1;
        bool is_over = library_drain(world, number, warm_up_limit_ms(world));
        application_wire_answered(&application->wire, number, 0);
        if (world->search.reason[0]) return false;
        if (!is_over)
            return library_give_up(world, "instance %d, the request %s, alone, did not end within %d s of its time",
                                   number + 1, request->name, (int)(warm_up_limit_ms(world) / 1000));
        if (application->exits[number] != 0)
            return library_give_up(world, "instance %d, the request %s, alone, ended with status %d", number + 1,
                                   request->name, application->exits[number]);
        if (!alone_end(world)) return false;
    }
    return true;
}

/* What single requests did, one after the other: {"requests": [{"name", "instance"}], "accesses": as of a schedule}. */
static json_t *alone_json(const struct application *application) {
    const struct rule_record *record = &application->wire.record;
    json_t *requests = json_array();
    for (int each = 0; each < record->request_count; each++)
        json_array_append_new(requests, json_pack("{s:s,s:i}", "name", record->requests[each].name, "instance",
                                                  record->requests[each].instance + 1));
    return json_pack("{s:o,s:o}", "requests", requests, "accesses", application_wire_json(&application->wire));
}

/* What warnings are about happens around the messages that show it: exchanges are aimed there. */
static void warnings_aim(struct library_world *world) {
    const struct application *application = application_of(world);
    struct search_world *search = &world->search;
    search->exchange_aim_count = 0;
    for (int each = 0; each < application->warnings.count; each++) {
        const struct rule_finding *warning = &application->warnings.of[each];
        const size_t places[] = {warning->event, warning->other};
        for (int place = 0; place < 4 && search->exchange_aim_count < EXCHANGE_AIMS; place++) {
            uint64_t sort = application->wire.sorts[places[place / 2]];
            if (sort) search->exchange_aims[search->exchange_aim_count++] = library_situation(place % 2 > 0, sort);
        }
    }
}

static bool is_new(const struct library_world *world) {
    for (int number = 0; number < application_of(world)->instances; number++)
        if (!world->clients[number].has_played) return true;
    return false;
}

static void data_save(struct library_world *world) {
    for (int node = 0; node < world->settings.nodes; node++)
        if (world->servers[node].kind->save && !world->servers[node].is_saved)
            world->servers[node].kind->save(&world->servers[node]);
}

bool application_empty(struct library_world *world) {
    if (!data_reset(world)) return false;
    application_wire_begin(&application_of(world)->wire);
    return true;
}

/* A check that is not met before anything was asked says nothing about schedules. */
static bool checks_hold_before(struct library_world *world) {
    world->event_count = 0;
    if (!data_reset(world) || !application_checks_ask(world)) return false;
    const struct application_findings *found = &application_of(world)->last;
    return found->count == 0 ||
           application_is_wrong(world, "before any request was sent: %.200s", found->of[0].sentence);
}

bool application_begun(struct library_world *world, uint64_t seed) {
    struct application *application = application_of(world);
    for (int number = 0; number < application->instances; number++)
        if (!world->clients[number].runs && !application_begin(world, number)) return false;
    world->workload.clients = application->instances + application->jobs;
    application->seed = seed;
    if (is_new(world)) {
        data_save(world);
        if (!checks_hold_before(world)) return false;
        application_wire_learn(&application->wire);
        application_wire_begin(&application->wire);
        for (int number = 0; number < application->instances; number++)
            if (!instance_warm_up(world, number)) return false;
        if (!servers_warm_up(world) || !jobs_warm_up(world)) return false;
        application_rules_judge(&application->wire.record, &application->warnings);
        warnings_aim(world);
        json_decref(application->alone);
        application->alone = alone_json(application);
    }
    for (int number = 0; number < application->instances; number++) {
        struct random random = random_split(seed, (uint64_t)number);
        hosted_seed(&world->clients[number].program, random_next(&random));
        world->clients[number].has_played = true;
    }
    return true;
}

/* Its answers are not awaited any more. */
bool application_forget(struct library_world *world, int number) {
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
        http_exchange_close(&application_of(world)->exchanges[number][thread]);
    return true;
}

/* --- what is asked in a schedule --- */

/* Each request is sent so often as it may be, or less often; by whom, and after which others, is drawn. */
void application_draw(struct library_world *world, struct workload *workload, uint64_t seed) {
    const struct application *application = application_of(world);
    struct random random = random_split(seed, 1);
    const struct application_request *bag[APPLICATION_REQUESTS * WORKLOAD_CALLS];
    int count = 0;
    *workload = (struct workload){.clients = application->instances + application->jobs};
    for (int each = 0; each < application->request_count; each++)
        for (int time = 0; time < application->requests[each].times; time++)
            bag[count++] = &application->requests[each];
    for (int each = count - 1; each > 0; each--) {
        int other = (int)random_below(&random, (uint64_t)each + 1);
        const struct application_request *kept = bag[each];
        bag[each] = bag[other];
        bag[other] = kept;
    }
    int sent = count > 2 ? 2 + (int)random_below(&random, (uint64_t)count - 1) : count;
    for (int each = 0; each < sent; each++) {
        int client = (int)random_below(&random, (uint64_t)application->instances);
        int thread = (int)random_below(&random, WORKLOAD_THREADS);
        if (bag[each]->way == REQUEST_COMMAND) {
            client = application->instances + client % application->jobs;
            thread = 0;
        }
        if (workload->threads[workload_thread_number(client, thread)].count + 2 > WORKLOAD_CALLS) continue;
        if (random_below(&random, 8) == 0) {
            int64_t longest_ms = world->settings.lease_ms + 1;
            workload_call_add(workload, client, thread, CALL_WORK)->work_ms =
                (int64_t)random_below(&random, (uint64_t)longest_ms);
        }
        struct planned_call *call = workload_call_add(workload, client, thread, CALL_REQUEST);
        snprintf(call->form, sizeof call->form, "%s", bag[each]->name);
    }
}

static void answer_add(struct library_world *world, int client, int thread, enum outcome outcome, const char *error) {
    struct library_thread *state = &world->clients[client].threads[thread];
    struct call_event event = {.kind = EVENT_ANSWER,
                               .call = state->ask,
                               .asked = world->events[state->ask].asked,
                               .outcome = outcome,
                               .client = client};
    snprintf(event.name, sizeof event.name, "%s", error);
    library_event_add(world, event);
    state->asked = false;
    state->next++;
    application_wire_answered(&application_of(world)->wire, client, thread);
}

static bool server_ask(struct library_world *world, int client, int thread, const struct application_request *request) {
    char reason[SERVER_REASON];
    bool good = server_tell(world, request, reason);
    answer_add(world, client, thread, good ? OUTCOME_OK : OUTCOME_REFUSED, good ? "" : reason);
    return true;
}

bool application_ask(struct library_world *world, int client, int thread) {
    struct application *application = application_of(world);
    const struct planned_call *planned = library_next_call(world, client, thread);
    const struct application_request *request = application_request_named(application, planned->form);
    bool is_job = request && request->way == REQUEST_COMMAND;
    if (planned->call.verb != CALL_REQUEST || !request)
        return library_give_up(world, "the application has no request called %.60s", planned->form);
    if (is_job != library_is_job(world, client) || (is_job && thread > 0))
        return library_give_up(world, "%s is a request to %s", request->name,
                               is_job ? "a client behind the instances, and its first thread" : "an instance");
    struct call call = planned->call;
    call.form = request->name;
    library_ask_note(world, client, thread, &call);
    application_wire_asked(&application->wire, client, thread, request->name);
    application->asked++;
    application->numbers[client][thread] = application->asked;
    if (is_job) return application_job_start(world, client, request, application->asked);
    if (request->way == REQUEST_SERVER) return server_ask(world, client, thread, request);
    struct http_exchange *exchange = &application->exchanges[client][thread];
    http_exchange_close(exchange);
    world->clients[client].program.stirred = true;
    int port = application->ports[client];
    if (!http_exchange_begin(exchange, port, request_write(request, port, application->asked)))
        answer_add(world, client, thread, OUTCOME_REFUSED, "no connection");
    return true;
}

/* --- answers --- */

/* "409 not enough": the status and the beginning of the body, without what no terminal shows. */
static void answer_describe(const struct http_answer *answer, char text[64]) {
    int length = snprintf(text, 64, "%d", answer->status);
    if (answer->status < REFUSED_FROM) {
        text[0] = '\0';
        return;
    }
    for (size_t at = 0; answer->body[at] && at < BODY_SHOWN; at++) {
        char sign = answer->body[at];
        if (at == 0) text[length++] = ' ';
        text[length++] = sign >= ' ' && sign < 127 ? sign : ' ';
    }
    text[length] = '\0';
}

static enum outcome outcome_of_status(int status) {
    if (status < ANSWERED_FROM || status >= FAILED_FROM) return OUTCOME_UNKNOWN;
    return status >= REFUSED_FROM ? OUTCOME_REFUSED : OUTCOME_OK;
}

static bool thread_hear(struct library_world *world, int client, int thread) {
    struct http_exchange *exchange = &application_of(world)->exchanges[client][thread];
    char text[64];
    if (exchange->fd < 0) return false;
    enum http_progress progress = http_exchange_hear(exchange);
    if (progress == HTTP_WAITS) return false;
    answer_describe(&exchange->answer, text);
    enum outcome outcome = progress == HTTP_DONE ? outcome_of_status(exchange->answer.status) : OUTCOME_UNKNOWN;
    if (outcome == OUTCOME_OK)
        application_models_hear(application_of(world), application_of(world)->numbers[client][thread],
                                &exchange->answer);
    if (world->clients[client].threads[thread].asked)
        answer_add(world, client, thread, outcome, progress == HTTP_DONE ? text : "the connection ended");
    http_exchange_close(exchange);
    world->clients[client].program.stirred = true; /* it sees the end of the connection */
    return true;
}

static bool job_hear(struct library_world *world, int client) {
    bool any = false;
    char text[24];
    if (!application_job_over(world, client, &any)) return any;
    int status = application_of(world)->exits[client];
    snprintf(text, sizeof text, "status %d", status);
    enum outcome outcome = status == 0 ? OUTCOME_OK : status < SIGNALS_FROM ? OUTCOME_REFUSED : OUTCOME_UNKNOWN;
    if (world->clients[client].threads[0].asked) answer_add(world, client, 0, outcome, status == 0 ? "" : text);
    world->clients[client].control = 0;
    return true;
}

bool application_hear(struct library_world *world, int client) {
    struct application *application = application_of(world);
    if (library_is_job(world, client)) return job_hear(world, client);
    struct http_exchange *control = &application->control[client];
    bool any = false;
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++) any |= thread_hear(world, client, thread);
    if (control->fd < 0 || !world->clients[client].control) return any;
    enum http_progress progress = http_exchange_hear(control);
    if (progress == HTTP_WAITS) return any;
    application->control_answers[client] = control->answer;
    if (progress != HTTP_DONE) application->control_answers[client].status = 0;
    application->control_ended[client] = application->control_answers[client].status == 0;
    world->clients[client].control = 0;
    return true;
}

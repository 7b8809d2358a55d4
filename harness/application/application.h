/* An application under the search: unmodified processes of one service (*instances*), the requests that are sent to
 * them, and the checks of what they have left at their servers. The world is that of libraries (harness/library); this
 * room is how it speaks to such programs, and how their schedules are judged.
 *
 * Issue 23; Tang and others, "Ad Hoc Transactions in Web Applications" (SIGMOD 2022). */
#pragma once

#include <jansson.h>

#include "harness/application/application_wire.h"
#include "harness/application/http_exchange.h"
#include "harness/application/range_expression.h"
#include "harness/library/library_world.h"

enum {
    APPLICATION_REQUESTS = 16,
    APPLICATION_CHECKS = 24,
    APPLICATION_RESETS = 16,
    APPLICATION_HINTS = 32,
    APPLICATION_SENT = WORKLOAD_THREADS_ALL * WORKLOAD_CALLS, /* requests of a schedule */
    REQUEST_TEXT = 1 << 14
};

/* Where a request goes: to the port of an instance; to a server, from which an instance takes it; or it is a program
 * of its own, a job, which runs as one more instance and is answered when it ends. */
enum request_way { REQUEST_HTTP, REQUEST_SERVER, REQUEST_COMMAND };

/* Texts are the document's. In `target`, `body` and `text` {number} is the number of the request in its schedule, from
 * 1, and {uuid} a UUID made of it. */
struct application_request {
    const char *name; /* [a-z_][a-z0-9_]* */
    enum request_way way;
    int times;                                 /* sent at most so often in a schedule */
    const char *method, *target, *body, *head; /* HTTP; `head`: more lines of it, each with its end */
    int node;                                  /* REQUEST_SERVER */
    const char *text;                          /* what the server is told; the path of the program */
};

/* What must be so at the end of a schedule. */
enum check_kind {
    CHECK_EQUALS, /* the answer is one value, within the range of an expression */
    CHECK_LEAST,  /* ... at least the expression's least value */
    CHECK_MOST,   /* ... at most its greatest */
    CHECK_TEXT,   /* ... is this text */
    CHECK_EMPTY,  /* there is no row */
    CHECK_MODEL,  /* the answers of requests are those of one object: application_model.c */
};

/* What a request does to the object of a model. */
enum model_effect { EFFECT_NONE, EFFECT_READ, EFFECT_ADD, EFFECT_WRITE };

/* A number that requests read and change, and where their answers say what it is (docs/applications.md). */
struct answer_model {
    const char *name; /* "counter", "register" */
    int64_t starts;
    const char *field; /* of the JSON of an answer, "a.b" of an object in an object; "": the answer is the number */
    enum model_effect effects[APPLICATION_REQUESTS]; /* of each request */
    int64_t amounts[APPLICATION_REQUESTS];           /* EFFECT_ADD */
    int64_t values[APPLICATION_SENT]; /* what the answers of a schedule say, by the request's number; ANSWER_SILENT */
    bool has_value;                   /* an answer of a single request, before the first schedule, said one */
};

#define ANSWER_SILENT INT64_MIN

struct application_check {
    enum check_kind kind;
    int node;
    const char *text;          /* what the server is asked */
    const char *right;         /* the expression, or the text */
    struct answer_model model; /* CHECK_MODEL */
};

struct application_reset {
    int node;
    const char *text;
};

/* What became of the requests of one name in a schedule. */
struct request_counts {
    int asked, ok, refused, unknown; /* unknown: no answer, or one that says that the service has failed (5xx) */
};

enum application_property {
    APPLICATION_CHECK,  /* what must be so at the end is so */
    APPLICATION_ANSWER, /* every request is answered */
    APPLICATION_RULE,   /* the first of the rules of checkers/rules */
    APPLICATION_PROPERTIES = APPLICATION_RULE + APPLICATION_RULES
};

enum { APPLICATION_FINDINGS = APPLICATION_CHECKS + 1 + RULE_FINDINGS, APPLICATION_SENTENCE = RULE_SENTENCE };

struct application_findings {
    struct {
        int property;  /* enum application_property */
        size_t event;  /* of the world that shows it */
        size_t access; /* of the record of the rules; SIZE_MAX: it is about none */
        char sentence[APPLICATION_SENTENCE];
    } of[APPLICATION_FINDINGS];
    int count;
};

struct application {
    json_t *document; /* owned */
    const char *name, *ready;
    int instances, jobs;                 /* `jobs`: that can run at a time, as clients behind the instances */
    int64_t lasts_ms;                    /* a schedule goes on for so long at least */
    const char *starts[LIBRARY_CLIENTS]; /* the program of each instance, the latest one of each job */
    int ports[LIBRARY_CLIENTS];          /* at which it listens */
    struct application_request requests[APPLICATION_REQUESTS];
    struct application_check checks[APPLICATION_CHECKS];
    struct application_reset resets[APPLICATION_RESETS];
    int request_count, check_count, reset_count;
    int64_t timers_ms; /* the period of their timers; 0: they have none */

    struct http_exchange exchanges[LIBRARY_CLIENTS][WORKLOAD_THREADS]; /* of requests that are under way */
    struct http_exchange control[LIBRARY_CLIENTS];                     /* of what is no call of a schedule */
    struct http_answer control_answers[LIBRARY_CLIENTS];               /* its status is 0 if there was none */
    bool control_ended[LIBRARY_CLIENTS];                               /* without an answer that is HTTP/1.1 */
    int numbers[LIBRARY_CLIENTS][WORKLOAD_THREADS];                    /* of their latest requests, in the schedule */
    int exits[LIBRARY_CLIENTS];                                        /* of jobs: the status of the latest */
    uint64_t seed;                                                     /* of the schedule */
    bool wrong;                             /* what its file says cannot be so; the world's reason says what */
    int asked;                              /* requests that were sent in the schedule, or before it */
    const char *undecided;                  /* why a model could not be judged; NULL: all were */
    struct application_findings last, kept; /* of schedules */
    struct application_wire wire;
    struct rule_findings warnings; /* of single requests, one after the other, before the first schedule */
    json_t *alone;                 /* owned: what each of them did; NULL: nothing was sent yet */
    struct lock_hint hints[APPLICATION_HINTS];
    int hint_count;
};

/* Reads the file that says what the application is; its shape is what application_file.c reads, and
 * harness/lockstorm/application writes. False: `reason`, of SEARCH_REASON bytes. */
bool application_read(struct application *application, const char *path, char *reason);
void application_free(struct application *application);

/* NULL: no request has this name. */
const struct application_request *application_request_named(const struct application *application, const char *name);

static inline struct application *application_of(const struct library_world *world) {
    return world->settings.application;
}

extern const struct hosted_protocol APPLICATION_PROTOCOL;

/* What the user has written is wrong. Returns false, with the world's reason. */
#define application_is_wrong(world, ...) (application_of(world)->wrong = true, library_give_up(world, __VA_ARGS__))

/* --- application_requests.c: slots of the protocol --- */

void application_connect(struct library_world *world, int client);
enum { UUID_TEXT = 40 };
/* What {uuid} is in the request with this number. */
void application_uuid_write(uint64_t number, char uuid[UUID_TEXT]);

bool application_begin(struct library_world *world, int client);
bool application_begun(struct library_world *world, uint64_t seed);
bool application_forget(struct library_world *world, int client);
bool application_empty(struct library_world *world);
void application_draw(struct library_world *world, struct workload *workload, uint64_t seed);
bool application_ask(struct library_world *world, int client, int thread);
bool application_hear(struct library_world *world, int client);

/* --- application_jobs.c --- */

int application_lasting(const struct library_world *world);
/* Starts the program of a request. */
bool application_job_start(struct library_world *world, int client, const struct application_request *request,
                           int number);
/* Whether the job has ended, all of what it has sent was taken, and nobody has heard of it: application->exits says
 * how.
 */
bool application_job_over(struct library_world *world, int client, bool *any);

/* --- application_model.c --- */

/* The schedule's answers are forgotten. */
void application_models_begin(struct application *application);
/* The request with this number in the schedule was answered with a status below 400. */
void application_models_hear(struct application *application, int number, const struct http_answer *answer);
/* A single request was, before the first schedule. False: what the file says of its answer is wrong. */
bool application_models_try(struct library_world *world, const struct application_request *request,
                            const struct http_answer *answer);
/* Judges the answers of the schedule. `sentence`: which contradict each other; empty: none do. `event`: the world's, of
 * the last of them. False: a limit was reached. */
bool application_model_judge(const struct library_world *world, const struct application_check *check,
                             char sentence[APPLICATION_SENTENCE], size_t *event);

/* --- application_judge.c --- */

/* What became of all requests with this name; of all requests if it is NULL. */
struct request_counts request_counts_of(const struct library_world *world, const char *name);
/* Asks the servers, and fills in application->last with a sentence for each check that is not met. False: with the
 * world's reason. */
bool application_checks_ask(struct library_world *world);
void application_judge(struct library_world *world, const struct search_settings *settings,
                       struct search_outcome *outcome);
void application_keep(struct library_world *world);
void application_describe(const struct library_world *world, bool kept, json_t *result);

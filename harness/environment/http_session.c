#include "harness/environment/http_session.h"

#if LOCKSTORM_HTTP

#include <curl/curl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>

#include "harness/scheduler/grown.h"

enum { URL_ROOM = 128, HTTP_OK = 200, ERROR_ROOM = 256, PAUSE_MS = 1 };

struct http_session {
    CURLM *multi; /* keeps the connection from request to request */
    CURL *request;
    struct curl_slist *headers;
    bool begun, sent, ended, failed;
    char *body;          /* of the answer, as far as it has arrived; zero-terminated */
    size_t length, room; /* of it */
    size_t consumed;     /* of it: the line that was returned last */
    char error[ERROR_ROOM];
};

static void library_start(void) {
    curl_global_init(CURL_GLOBAL_NOTHING);
}

/* libcurl sends a request again when a connection that it reused turns out to have ended. It is unknown then whether
 * the first one was carried out, and repeating it is the caller's decision: so the second one is aborted. */
static int before_request(void *session, char *to_ip, char *from_ip, int to_port, int from_port) {
    (void)to_ip, (void)from_ip, (void)to_port, (void)from_port;
    struct http_session *self = session;
    if (self->sent) return CURL_PREREQFUNC_ABORT;
    self->sent = true;
    return CURL_PREREQFUNC_OK;
}

static size_t body_arrives(char *bytes, size_t size, size_t count, void *session) {
    struct http_session *self = session;
    self->body = grown(self->body, self->length + size * count + 1, &self->room, 1);
    memcpy(self->body + self->length, bytes, size * count);
    self->length += size * count;
    self->body[self->length] = '\0';
    return size * count;
}

/* libcurl gets no limit of its own: each wait has one. */
static bool request_prepare(struct http_session *self, const char *where) {
    self->headers = curl_slist_append(NULL, "Content-Type: application/json");
    return self->headers && curl_easy_setopt(self->request, CURLOPT_UNIX_SOCKET_PATH, where) == CURLE_OK &&
           curl_easy_setopt(self->request, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(self->request, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(self->request, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(self->request, CURLOPT_HTTPHEADER, self->headers) == CURLE_OK &&
           curl_easy_setopt(self->request, CURLOPT_PREREQFUNCTION, before_request) == CURLE_OK &&
           curl_easy_setopt(self->request, CURLOPT_PREREQDATA, self) == CURLE_OK &&
           curl_easy_setopt(self->request, CURLOPT_WRITEFUNCTION, body_arrives) == CURLE_OK &&
           curl_easy_setopt(self->request, CURLOPT_WRITEDATA, self) == CURLE_OK;
}

struct http_session *http_session_open(const char *where) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, library_start);
    struct http_session *self = calloc(1, sizeof *self);
    if (!self) abort();
    self->multi = curl_multi_init();
    self->request = curl_easy_init();
    if (self->multi && self->request && request_prepare(self, where)) return self;
    http_session_close(self);
    return NULL;
}

static void http_answer_drop(struct http_session *self) {
    if (self->begun) curl_multi_remove_handle(self->multi, self->request);
    free(self->body);
    self->body = NULL;
    self->length = self->room = self->consumed = 0;
    self->begun = self->sent = self->ended = self->failed = false;
}

void http_session_close(struct http_session *self) {
    if (!self) return;
    http_answer_drop(self);
    if (self->request) curl_easy_cleanup(self->request);
    if (self->multi) curl_multi_cleanup(self->multi);
    curl_slist_free_all(self->headers);
    free(self);
}

bool http_session_begin(struct http_session *self, const char *path, const char *body) {
    char url[URL_ROOM];
    http_answer_drop(self);
    body_arrives(url, 0, 0, self); /* it is empty so far */
    snprintf(url, sizeof url, "http://localhost%s", path);
    self->begun = curl_easy_setopt(self->request, CURLOPT_URL, url) == CURLE_OK &&
                  curl_easy_setopt(self->request, CURLOPT_COPYPOSTFIELDS, body) == CURLE_OK &&
                  curl_multi_add_handle(self->multi, self->request) == CURLM_OK;
    return self->begun;
}

/* --- waiting --- */

/* Lets libcurl do what it can without waiting, and notes whether the request has ended. */
static bool request_move(struct http_session *self) {
    int running, left;
    if (curl_multi_perform(self->multi, &running) != CURLM_OK) return false;
    for (const CURLMsg *said; (said = curl_multi_info_read(self->multi, &left));) {
        if (said->msg != CURLMSG_DONE) continue;
        self->ended = true;
        self->failed = said->data.result != CURLE_OK;
    }
    return true;
}

/* Waits until it is worth calling request_move again. A unix socket usually takes a short request at once; if not, it
 * will in a moment. */
static bool request_wait(struct http_session *self, const struct live_wait *wait) {
    fd_set readable, writable, broken;
    long timeout_ms = -1;
    int fd = -1;
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_ZERO(&broken);
    curl_multi_timeout(self->multi, &timeout_ms);
    if (timeout_ms == 0) return true;
    if (curl_multi_fdset(self->multi, &readable, &writable, &broken, &fd) != CURLM_OK) return false;
    if (fd < 0) {
        poll(NULL, 0, PAUSE_MS);
        return true;
    }
    if (!FD_ISSET(fd, &writable)) return live_wait_readable(wait, fd);
    poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
    return true;
}

static long status_of(const struct http_session *self) {
    long status = 0;
    curl_easy_getinfo(self->request, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

bool http_session_answer(struct http_session *self, const struct live_wait *wait, struct env_reply *reply) {
    while (request_move(self) && !self->ended)
        if (!request_wait(self, wait)) return false;
    if (!self->ended || self->failed) return false;
    *reply = (struct env_reply){.kind = ENV_REPLY_STRING, .text = self->body, .length = self->length};
    if (status_of(self) == HTTP_OK) return true;
    snprintf(self->error, sizeof self->error, "%ld %s", status_of(self), self->body);
    *reply = (struct env_reply){.kind = ENV_REPLY_ERROR, .text = self->error, .length = strlen(self->error)};
    return true;
}

/* Drops the line that was returned last and moves up the rest. */
static char *http_line_end(struct http_session *self) {
    self->length -= self->consumed;
    memmove(self->body, self->body + self->consumed, self->length + 1);
    self->consumed = 0;
    return strchr(self->body, '\n');
}

bool http_session_line(struct http_session *self, const struct live_wait *wait, struct env_reply *reply) {
    char *end;
    while (!(end = http_line_end(self))) {
        if (self->ended || !request_move(self)) return false;
        if (!self->ended && !strchr(self->body, '\n') && !request_wait(self, wait)) return false;
    }
    if (status_of(self) != HTTP_OK) return false;
    *end = '\0';
    self->consumed = (size_t)(end + 1 - self->body);
    *reply = (struct env_reply){.kind = ENV_REPLY_STRING, .text = self->body, .length = (size_t)(end - self->body)};
    return true;
}

#else /* without the library there is no session, and no parameter counts */
#pragma GCC diagnostic ignored "-Wunused-parameter"

SESSION_ABSENT(struct http_session *, http_session_open, (const char *where), NULL)
SESSION_ABSENT(void, http_session_close, (struct http_session * session), )
SESSION_ABSENT(bool, http_session_begin, (struct http_session * session, const char *path, const char *body), false)
SESSION_ABSENT(bool, http_session_answer,
               (struct http_session * session, const struct live_wait *wait, struct env_reply *reply), false)
SESSION_ABSENT(bool, http_session_line,
               (struct http_session * session, const struct live_wait *wait, struct env_reply *reply), false)

#endif

#include <jansson.h>
#include <resolv.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/library_service/library_server.h"

/* The world asks etcd through its JSON gateway (etcd's documentation, "gRPC gateway"), in HTTP/1.0: then an answer has
 * no chunks, and the connection ends with it. */

enum { REQUEST = 512, ANSWER = 1 << 18, KEY = 4096 };

/* NULL: no answer came, or it is an error. The caller frees. */
static json_t *etcd_kind_ask(struct library_server *server, const char *path, const char *body) {
    static char answer[ANSWER];
    char request[REQUEST];
    int fd = server_connect(server);
    if (fd < 0) return NULL;
    int length = snprintf(request, sizeof request, "POST %s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", path,
                          strlen(body), body);
    size_t got = server_exchange(server, fd, (struct span){request, (size_t)length}, answer, sizeof answer - 1);
    close(fd);
    answer[got] = '\0';
    const char *text = strstr(answer, "\r\n\r\n");
    if (!text || !strstr(answer, " 200 ")) return NULL;
    return json_loads(text, 0, NULL);
}

static json_t *ask_surely(struct library_server *server, const char *path, const char *body) {
    json_t *answer = etcd_kind_ask(server, path, body);
    if (!answer) server_give_up(server, "its gateway does not answer");
    return answer;
}

static bool etcd_kind_answers(struct library_server *server) {
    json_t *answer = etcd_kind_ask(server, "/v3/kv/range", "{\"key\":\"AA==\"}");
    json_decref(answer);
    return answer != NULL;
}

static const char EVERY_KEY[] = "{\"key\":\"AA==\",\"range_end\":\"AA==\"}"; /* base64 of a zero byte */

static void etcd_flush(struct library_server *server) {
    json_decref(ask_surely(server, "/v3/kv/deleterange", EVERY_KEY));
}

static void etcd_residue(struct library_server *server, residue_taken *taken, void *taker) {
    json_t *answer = ask_surely(server, "/v3/kv/range", EVERY_KEY);
    const json_t *keys = json_object_get(answer, "kvs");
    for (size_t each = 0; each < json_array_size(keys); each++) {
        char key[KEY];
        const char *text = json_string_value(json_object_get(json_array_get(keys, each), "key"));
        int length = b64_pton(text, (unsigned char *)key, sizeof key - 1);
        key[length > 0 ? length : 0] = '\0';
        taken(taker, "key", key, -1);
    }
    json_decref(answer);
}

const struct server_kind ETCD_KIND = {
    .service = "etcd",
    .requests = &GRPC_REQUEST_FORMAT,
    .answers = &GRPC_REPLY_FORMAT,
    .is_hosted = true,
    .answers_now = etcd_kind_answers,
    .end = hosted_server_end,
    .flush = etcd_flush,
    .residue = etcd_residue,
};

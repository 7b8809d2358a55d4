#include "harness/recogniser/redis_talk.h"

void script_remember(struct recogniser *recogniser, struct span text) {
    (void)recogniser;
    (void)text;
}

void script_asked(struct redis_talk *talk, struct redis_request *request) {
    (void)talk;
    (void)request;
}

void script_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    if (reply->type != '-') redis_not_recognised(talk, request, "a script");
}

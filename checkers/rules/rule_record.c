#include "checkers/rules/rule_record.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 16, FIRST_ROOM = 64 };

/* Texts stand one behind the other. A block does not move. */
struct text_block {
    struct text_block *next;
    size_t used, room;
    char bytes[];
};

static void *list_with_room(void *list, size_t count, size_t *room, size_t size) {
    if (count < *room) return list;
    *room = *room ? 2 * *room : FIRST_ROOM;
    list = realloc(list, *room * size);
    if (!list) abort();
    return list;
}

static struct text_block *block_make(size_t room, struct text_block *next) {
    struct text_block *block = malloc(sizeof *block + room);
    if (!block) abort();
    *block = (struct text_block){.next = next, .room = room};
    return block;
}

static const char *text_keep(struct rule_record *record, const char *text) {
    size_t size = strlen(text) + 1;
    struct text_block *block = record->texts;
    if (!block || block->room - block->used < size)
        record->texts = block = block_make(size > BLOCK_BYTES ? size : BLOCK_BYTES, block);
    char *kept = block->bytes + block->used;
    memcpy(kept, text, size);
    block->used += size;
    return kept;
}

void rule_record_event(struct rule_record *record, const struct wire_event *event, int request, int instance) {
    record->events = list_with_room(record->events, record->count, &record->room, sizeof *record->events);
    struct rule_event *added = &record->events[record->count++];
    *added = (struct rule_event){*event, request, instance};
    added->wire.object = text_keep(record, event->object);
    added->wire.owner = text_keep(record, event->owner);
    added->wire.text = text_keep(record, event->text);
    added->wire.reason = text_keep(record, event->reason);
}

int rule_record_request(struct rule_record *record, const char *name, int instance) {
    record->requests = list_with_room(record->requests, (size_t)record->request_count, &record->request_room,
                                      sizeof *record->requests);
    struct rule_request *added = &record->requests[record->request_count];
    *added = (struct rule_request){.instance = instance, .asked_at = record->count, .answered_at = SIZE_MAX};
    snprintf(added->name, sizeof added->name, "%s", name);
    return record->request_count++;
}

void rule_record_answer(struct rule_record *record, int request) {
    assert(request >= 0 && request < record->request_count);
    record->requests[request].answered_at = record->count;
}

static void texts_free(struct text_block *block) {
    while (block) {
        struct text_block *next = block->next;
        free(block);
        block = next;
    }
}

void rule_record_clear(struct rule_record *record) {
    record->count = 0;
    record->request_count = 0;
    record->is_struck = false;
    if (!record->texts) return;
    texts_free(record->texts->next);
    record->texts->next = NULL;
    record->texts->used = 0;
}

void rule_record_free(struct rule_record *record) {
    free(record->events);
    free(record->requests);
    texts_free(record->texts);
    *record = (struct rule_record){0};
}

#include "faults/proxy/proxy.h"

#include <string.h>

uint32_t proxy_text(struct proxy *proxy, const char *text) {
    const struct shared_page *page = proxy->actor.page;
    int64_t wall_ns = shared_page_wall_ns(page);
    return history_text(proxy->actor.history, text, strlen(text), shared_page_mono_ns(page), wall_ns);
}

void proxy_link_add_activity(struct proxy_link *link, enum target_activity activity) {
    if (link->activity < activity) link->activity = activity;
}

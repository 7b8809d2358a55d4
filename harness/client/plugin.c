#include "harness/client/plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/client/lockstorm.h"

/* When one of these changes, plug-ins that were built before read the wrong bytes: raise LOCKSTORM_LOCK_ABI. */
_Static_assert(sizeof(struct lock_type) == 152 && sizeof(struct lock) == 72, "the layout of a lock has changed");
_Static_assert(sizeof(struct lock_grant) == 32 && sizeof(struct lock_options) == 40, "what it is asked has changed");
_Static_assert(sizeof(struct env_reply) == 48, "the layout of a reply has changed");

enum { NAME_MOST = 40, NODES_MOST = 7, REPLICAS_MOST = 2, STATE_MOST = 1 << 20, POLL_MOST_MS = 86400000 };
enum { TRAITS = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_FAIR | LOCK_TRAIT_RENEWS };

static bool plugin_reject(char reason[PLUGIN_REASON], const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool plugin_reject(char reason[PLUGIN_REASON], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, PLUGIN_REASON, format, arguments);
    va_end(arguments);
    return false;
}

/* --- the table that it defines --- */

/* Words of small letters and digits with single hyphens between them, as the names of all locks. */
static bool name_is_good(const char *name) {
    size_t length = strnlen(name, NAME_MOST + 1);
    return length > 0 && length <= NAME_MOST && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0' &&
           name[0] != '-' && name[length - 1] != '-' && !strstr(name, "--");
}

static bool lock_is_named(const struct lock_type *lock, char *reason) {
    if (!lock->name) return plugin_reject(reason, "its .name is NULL: give it one");
    if (!name_is_good(lock->name))
        return plugin_reject(reason, "its .name is %.*s: small letters, digits and single hyphens, %d at most",
                             NAME_MOST, lock->name, NAME_MOST);
    if (lock_find(lock->name))
        return plugin_reject(reason, "its .name is %s, which is a lock of lockstorm's own: give it another",
                             lock->name);
    if (!lock->summary) return plugin_reject(reason, "its .summary is NULL: say in a line what it is");
    return true;
}

static bool lock_is_whole(const struct lock_type *lock, char *reason) {
    if (!lock_is_named(lock, reason)) return false;
    if (!lock->acquire)
        return plugin_reject(reason, "its .acquire is NULL: of all its functions only this one is needed");
    if (lock->traits & ~(unsigned)TRAITS)
        return plugin_reject(reason, "its .traits are %#x, which is more than enum lock_trait knows", lock->traits);
    if (lock->capacity != 1 && lock->capacity != LOCK_CAPACITY_ASKED)
        return plugin_reject(reason, "its .capacity is %d: 1, or LOCK_CAPACITY_ASKED for a semaphore", lock->capacity);
    if ((unsigned)lock->waits > LOCK_WAITS_IN_SERVER)
        return plugin_reject(reason, "its .waits is %d, which enum lock_waiting does not know", (int)lock->waits);
    if ((unsigned)lock->service > LOCK_SERVICE_ZOOKEEPER)
        return plugin_reject(reason, "its .service is %d, which enum lock_service does not know", (int)lock->service);
    if (lock->nodes < 0 || lock->nodes > NODES_MOST)
        return plugin_reject(reason, "its .nodes are %d: %d at most, 0 means one", lock->nodes, NODES_MOST);
    if (lock->replicas < 0 || lock->replicas > REPLICAS_MOST)
        return plugin_reject(reason, "its .replicas are %d: %d at most", lock->replicas, REPLICAS_MOST);
    if (lock->poll_ms < 0 || lock->poll_ms > POLL_MOST_MS)
        return plugin_reject(reason, "its .poll_ms is %d: %d at most, 0 states none", lock->poll_ms, POLL_MOST_MS);
    if (lock->state_size > STATE_MOST)
        return plugin_reject(reason, "its .state_size is %zu bytes: %d at most", lock->state_size, STATE_MOST);
    if (lock->fixed) return plugin_reject(reason, "its .fixed is set, which is for lockstorm's own bugs: leave it out");
    return true;
}

/* --- loading --- */

static bool plugin_reject_load(const char *path, char *reason) {
    static const char undefined[] = "undefined symbol: ";
    const char *said = dlerror();
    const char *symbol = strstr(said, undefined);
    if (symbol)
        return plugin_reject(
            reason,
            "it asks for %s, which lockstorm does not have for it: harness/client/lockstorm.h declares what may be used",
            symbol + strlen(undefined));
    size_t named = strncmp(said, path, strlen(path)) == 0 ? strlen(path) : 0;
    return plugin_reject(reason, "it cannot be loaded as a shared object%s%s", named ? "" : ": ", said + named);
}

static bool abi_is_ours(void *handle, char *reason) {
    const unsigned *abi = dlsym(handle, "lockstorm_lock_abi");
    if (!abi)
        return plugin_reject(reason, "it has no lockstorm_lock_abi: "
                                     "write `const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;`");
    if (*abi != LOCKSTORM_LOCK_ABI)
        return plugin_reject(reason,
                             "it was built for version %u of a lock's layout, and this is version %u: build it again",
                             *abi, LOCKSTORM_LOCK_ABI);
    return true;
}

/* The writable segment of the object that holds the lock. */
static int statics_find(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)size;
    struct plugin *plugin = argument;
    const char *base = (const char *)object->dlpi_addr, *writable = NULL;
    size_t length = 0;
    bool has_lock = false;
    for (int each = 0; each < object->dlpi_phnum; each++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[each];
        if (part->p_type != PT_LOAD) continue;
        const char *start = base + part->p_vaddr, *lock = (const char *)plugin->lock;
        has_lock |= lock >= start && lock < start + part->p_memsz;
        if (!(part->p_flags & PF_W)) continue;
        writable = start;
        length = part->p_memsz;
    }
    if (!has_lock) return 0;
    plugin->statics = writable;
    plugin->statics_length = length;
    return 1;
}

bool plugin_load(const char *path, struct plugin *plugin, char reason[PLUGIN_REASON]) {
    *plugin = (struct plugin){.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!plugin->handle) return plugin_reject_load(path, reason);
    if (!abi_is_ours(plugin->handle, reason)) return false;
    plugin->lock = dlsym(plugin->handle, "lockstorm_lock");
    if (!plugin->lock)
        return plugin_reject(reason,
                             "it has no lockstorm_lock: write `const struct lock_type lockstorm_lock = { ... };`");
    if (!lock_is_whole(plugin->lock, reason)) return false;
    dl_iterate_phdr(statics_find, plugin);
    plugin->statics_kept = malloc(plugin->statics_length + 1);
    if (!plugin->statics_kept) abort();
    if (plugin->statics_length) memcpy(plugin->statics_kept, plugin->statics, plugin->statics_length);
    return true;
}

bool plugin_statics_same(const struct plugin *plugin, size_t *offset) {
    size_t length = plugin->statics_length;
    if (!length || memcmp(plugin->statics, plugin->statics_kept, length) == 0) return true;
    size_t first = 0;
    while (plugin->statics[first] == plugin->statics_kept[first]) first++;
    Dl_info object;
    if (!dladdr(plugin->lock, &object)) abort(); /* plugin_load has found it there */
    *offset = (size_t)(plugin->statics + first - (const char *)object.dli_fbase);
    return false;
}

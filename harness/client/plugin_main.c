/* plugin FILE: which lock a shared object defines, as one line of JSON, or what is wrong with it. A process of its own,
 * for it may crash.
 *
 *   {"lock": as the driver describes those of its table, "uses": the symbols that it imports,
 *    "needs": the libraries that it is linked with}
 *
 * Exit status: 0; 2 it defines no usable lock, with a sentence on standard error. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "harness/client/plugin.h"
#include "harness/locks/common/describe_lock.h"

enum { STATUS_GOOD = 0, STATUS_BAD = 2 };

/* What is read of its dynamic section. */
struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *gnu_hash, *hash;
};

static struct tables tables_find(const struct link_map *map) {
    struct tables tables = {0};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        const void *place = (const void *)entry->d_un.d_ptr; /* the loader has made this an address */
        if (entry->d_tag == DT_SYMTAB) tables.symbols = place;
        if (entry->d_tag == DT_STRTAB) tables.names = place;
        if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = place;
        if (entry->d_tag == DT_HASH) tables.hash = place;
    }
    return tables;
}

/* Imported symbols come before all that the GNU hash table covers; the older table counts all symbols. */
static json_t *uses_json(const struct tables *tables) {
    json_t *uses = json_array();
    uint32_t count = tables->hash ? tables->hash[1] : tables->gnu_hash ? tables->gnu_hash[1] : 0;
    for (uint32_t each = 1; each < count; each++) {
        const ElfW(Sym) *symbol = &tables->symbols[each];
        if (symbol->st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) != STB_WEAK)
            json_array_append_new(uses, json_string(tables->names + symbol->st_name));
    }
    return uses;
}

static json_t *needs_json(const struct link_map *map, const char *names) {
    json_t *needs = json_array();
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED) json_array_append_new(needs, json_string(names + entry->d_un.d_val));
    return needs;
}

static json_t *plugin_describe(const struct plugin *plugin, const char *path) {
    struct link_map *map;
    if (dlinfo(plugin->handle, RTLD_DI_LINKMAP, &map) != 0) return NULL;
    struct tables tables = tables_find(map);
    struct lock_type lock = *plugin->lock;
    if (!lock.explanation) lock.explanation = "A lock in C that was brought along (docs/test-your-own-lock.md).";
    if (!lock.source) lock.source = path;
    return json_pack("{s:o,s:o,s:o}", "lock", describe_lock(&lock), "uses", uses_json(&tables), "needs",
                     needs_json(map, tables.names));
}

int main(int argc, char **argv) {
    static struct plugin plugin;
    char reason[PLUGIN_REASON];
    if (argc != 2) {
        fprintf(stderr, "usage: plugin FILE\n");
        return STATUS_BAD;
    }
    if (!plugin_load(argv[1], &plugin, reason)) {
        fprintf(stderr, "%s\n", reason);
        return STATUS_BAD;
    }
    json_t *described = plugin_describe(&plugin, argv[1]);
    if (!described) {
        fprintf(stderr, "its summary, explanation or source is no UTF-8 text\n");
        return STATUS_BAD;
    }
    json_dumpf(described, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(described);
    return STATUS_GOOD;
}

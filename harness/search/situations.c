#include "harness/search/situations.h"

/* Whether a fault of a kind may strike what a step concerns. */
static bool may_strike(const struct situations *situations, const struct search_world *world, struct choice step,
                       enum choice_kind kind) {
    struct choice fault = {kind, 0, choice_has_amount(kind) ? world->lease_ms : 0};
    fault = world->operations->aimed(world, fault, step);
    return world->operations->allows(world, fault) &&
           !(situations->spares_store && world->operations->strikes_resource(world, fault));
}

void situations_note(struct situations *situations, const struct search_world *world, struct choice step) {
    uint64_t name = world->operations->situation(world, step);
    int each = 0;
    if (name == 0) return;
    while (each < situations->count && situations->of[each].name != name) each++;
    if (each == SITUATIONS_MOST) return;
    struct situation *situation = &situations->of[each];
    if (each == situations->count) {
        *situation = (struct situation){.name = name};
        situations->count++;
    }
    situation->steps++;
    situation->courses += situation->latest != situations->courses;
    situation->latest = situations->courses;
    for (int fault = 0; fault < world->space->fault_count; fault++) {
        enum choice_kind kind = world->space->faults[fault];
        bool is_new = !(situation->kinds >> kind & 1);
        if (is_new && may_strike(situations, world, step, kind)) situation->kinds |= (uint32_t)1 << kind;
    }
}

struct aim situations_draw(const struct situations *situations, enum choice_kind kind, struct random *random) {
    const struct situation *fitting[SITUATIONS_MOST];
    int count = 0;
    for (int each = 0; each < situations->count; each++)
        if (situations->of[each].kinds >> kind & 1) fitting[count++] = &situations->of[each];
    if (count == 0) return (struct aim){0};
    const struct situation *drawn = fitting[random_below(random, (uint64_t)count)];
    return (struct aim){drawn->name, random_below(random, (drawn->steps + drawn->courses - 1) / drawn->courses)};
}

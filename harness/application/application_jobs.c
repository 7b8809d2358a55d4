/* Requests that are programs of their own (`command` in lockstorm-app.toml): a job runs as one more instance, with its
 * connections, its time and its faults, and its exit status is its answer. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "harness/application/application.h"
#include "harness/search/mix.h"

/* What a program that was ended has sent is there at once; the limit is for a machine that stands still. */
enum { END_LIMIT_MS = 10000, PATH_ROOM = 4096 };

int application_lasting(const struct library_world *world) {
    return application_of(world)->instances;
}

/* The script of a job reads what {number} and {uuid} are from a file beside it. */
static bool places_write(struct library_world *world, const struct application_request *request, int number) {
    char path[PATH_ROOM], uuid[UUID_TEXT];
    snprintf(path, sizeof path, "%s.places", request->text);
    application_uuid_write((uint64_t)number, uuid);
    FILE *file = fopen(path, "w");
    bool good = file && fprintf(file, "%d %s\n", number, uuid) > 0;
    if (file) good &= fclose(file) == 0;
    return good || library_give_up(world, "the file %s cannot be written", path);
}

bool application_job_start(struct library_world *world, int client, const struct application_request *request,
                           int number) {
    struct application *application = application_of(world);
    application->starts[client] = request->text;
    if (!places_write(world, request, number)) return false;
    bool has_doors = world->clients[client].doors[0].address.text[0];
    return (has_doors || library_doors_open(world, client)) &&
           library_program_start(world, client, mix(application->seed, (uint64_t)number));
}

/* Whether the end of a connection of the program, which runs no more, is still to be heard. */
static bool ends_are_awaited(struct library_world *world, const struct library_client *client, int number) {
    for (int each = 0; each < client->link_count; each++) {
        struct pollfd end = {.fd = client->links[each].fd, .events = POLLIN};
        if (end.fd < 0 || client->links[each].ended) continue;
        if (poll(&end, 1, END_LIMIT_MS) > 0) return true;
        library_give_up(world, "instance %d has ended, and its connections have not", number + 1);
    }
    return false;
}

bool application_job_over(struct library_world *world, int number, bool *any) {
    struct library_client *client = &world->clients[number];
    if (!client->program.reason[0]) return false;
    if (client->program.supervisor) {
        application_of(world)->exits[number] = hosted_exit_status(&client->program);
        hosted_end(&client->program); /* and what it has started */
    }
    *any = ends_are_awaited(world, client, number);
    if (*any || world->search.reason[0]) return false;
    client->runs = false;
    return true;
}

/* history to-json FILE | follow FILE | from-json FILE OUT: a history as JSON Lines and back ("-" is standard input).
 * Exit status: 0; 2 bad usage or a damaged file, with the reason on standard error. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "harness/history/history_json.h"

static bool to_json(const char *path, bool follow, struct history_error *error) {
    struct history_reader *reader = history_reader_open(path, error);
    bool good = reader && history_json_write(reader, follow, stdout, error);
    history_reader_close(reader);
    return good;
}

/* Removes the output unless it is whole. */
static bool from_json(const char *path, const char *out_path, struct history_error *error) {
    struct history_error wrong;
    const char *failed = path;
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    FILE *out = in ? fopen(failed = out_path, "wxe") : NULL;
    bool good = out != NULL;
    if (!good) snprintf(error->text, sizeof error->text, "%.160s: %s", failed, strerror(errno));
    if (good && !history_json_read(in, out, &wrong)) {
        snprintf(error->text, sizeof error->text, "%.80s: %.160s", path, wrong.text);
        good = false;
    }
    if (out && fclose(out) != 0 && good) {
        snprintf(error->text, sizeof error->text, "%.160s: %s", out_path, strerror(errno));
        good = false;
    }
    if (out && !good) unlink(out_path);
    if (in) fclose(in);
    return good;
}

int main(int argc, char **argv) {
    struct history_error error = {.text = "usage: history to-json FILE | follow FILE | from-json FILE OUT"};
    const char *verb = argc > 2 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";
    bool good = false;
    if (argc == 3 && strcmp(verb, "to-json") == 0) good = to_json(path, false, &error);
    else if (argc == 3 && strcmp(verb, "follow") == 0) good = to_json(path, true, &error);
    else if (argc == 4 && strcmp(verb, "from-json") == 0) good = from_json(path, argv[3], &error);
    if (!good) fprintf(stderr, "%s\n", error.text);
    return good ? 0 : 2;
}

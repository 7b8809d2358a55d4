/* A zygote: a program that is loaded and linked but has not begun. For each request it makes a child that does, which
 * takes half as long as a start by exec or less: the rest goes to the loader, and a trial is short. The child is the
 * driver's child, as if the driver had started it.
 *
 * A request is one packet of texts, each ended by a zero byte: first a list of numbers - how many words follow the
 * program's own, whether the child is near (spawn.h), then the numbers of the descriptors that it keeps - then those
 * words, and variables for its environment (NAME=VALUE). With it come the descriptor for its output and those that it
 * keeps. The answer is the child's process id, or a negative errno. The zygote ends with its socket, and with the
 * thread that started it. */
#pragma once

/* In the environment of a zygote: the descriptor of the socket on which it receives requests. */
#define ZYGOTE_VARIABLE "LOCKSTORM_ZYGOTE"

enum { ZYGOTE_KEPT = 8 }; /* the most descriptors that a child keeps */

/* Called at the start of main. Returns at once if the environment has no ZYGOTE_VARIABLE. Otherwise serves requests,
 * and returns only in each child, with its words instead of the zygote's. The zygote's last word is a long one:
 * children put their words there, where ps looks for them. */
void zygote_begin(int *count, char ***words);

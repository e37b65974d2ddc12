/* SPDX-License-Identifier: MIT */
/** xheap image list and show. */
#ifndef XHEAP_CLI_IMAGE_LIST_H
#define XHEAP_CLI_IMAGE_LIST_H

struct option_grammar;

extern const struct option_grammar image_list_grammar;

/** The verbs list and show. arguments[0] is the verb. The exit status. */
int image_list_run(int count, char **arguments);
int image_show_run(int count, char **arguments);

#endif

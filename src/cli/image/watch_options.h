/* SPDX-License-Identifier: MIT */
/** The options of xheap image watch, which xheap-images takes as well. */
#ifndef XHEAP_CLI_WATCH_OPTIONS_H
#define XHEAP_CLI_WATCH_OPTIONS_H

#include "cli/option_parser.h"
#include "image/keeper.h"

/** Store in a struct keeper_options. */
extern const struct option_grammar watch_grammar;

/** Read the words after arguments[0]. CLI_OK, or CLI_FAILED after a message. */
int watch_options_parse(int count, char **arguments, struct keeper_options *options);

#endif

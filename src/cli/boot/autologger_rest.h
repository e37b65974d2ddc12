/* SPDX-License-Identifier: MIT */
/** What a session has left whose logger was killed, or whose directory was not there, earlier in the same boot, or
    in an earlier one. */
#ifndef XHEAP_CLI_AUTOLOGGER_REST_H
#define XHEAP_CLI_AUTOLOGGER_REST_H

struct autologger;

/** Complete the trace that an earlier session of this boot has left unfinished, and keep it: the next one would
    replace it. */
void autologger_rest_recover(const struct autologger *logger);

#endif

/* SPDX-License-Identifier: MIT */
/** The answer at the end of a recording. */
#ifndef XHEAP_CLI_RECORD_ANSWER_H
#define XHEAP_CLI_RECORD_ANSWER_H

#include <stdbool.h>

struct record;

/** Note the processor time of the attached processes: their recording begins. */
void record_note_processor_time(struct record *record);

/** Print the answer in three lines, if it costs at most a tenth of the recording's processor time, of a recording below
    a second at most 5 ms or a hundredth of its time: the peak, what grows or is outstanding, and the command to type
    next. The command and the logger have been waited for. `shown`: the trace for people; is_surveyed: what
    record_keep_survey() has returned. Return false, and print nothing, if it would cost more or there is none. */
bool record_print_answer(const struct record *record, const char *shown, bool is_surveyed);

/** Make what the first report looks at every block for, where the recording has made an index, which keeps it. Unless
    --index always wants both, it takes half a second, or as much as the answer may. Return whether it is kept. */
bool record_keep_survey(const struct record *record);

#endif

# SPDX-License-Identifier: MIT
# Completion of xheap for fish.

function __xheap_traces
    __fish_complete_suffix .xht
end

# True where options of a recording may stand: anywhere behind start, and behind record before its command.
function __xheap_before_command
    set -l words (commandline -opc)
    test "$words[2]" = start; and return 0
    test "$words[2]" = record; or return 1
    set -l is_value 0
    for word in $words[3..-1]
        if test $is_value = 1
            set is_value 0
        else if contains -- $word -o --output -p --pid --duration --stackwalk --stack-depth --on-full --wait-limit --buffer-size --min-buffers --max-buffers --sample --max-file --file-mode --keep --clock --trigger --permissions --flush-timer
            set is_value 1
        else if not string match -q -- '-*' $word
            return 1
        else if test $word = --
            return 1
        end
    end
    return 0
end

complete -c xheap -f
complete -c xheap -n __fish_use_subcommand -a record -d 'Run a command and record every heap call of it'
complete -c xheap -n __fish_use_subcommand -a start -d 'Start a session for running processes'
complete -c xheap -n __fish_use_subcommand -a update -d 'Change a running session'
complete -c xheap -n __fish_use_subcommand -a query -d 'Show the state of a session'
complete -c xheap -n __fish_use_subcommand -a sessions -d 'List the sessions'
complete -c xheap -n __fish_use_subcommand -a flush -d 'Write all recorded events of a session to its trace'
complete -c xheap -n __fish_use_subcommand -a stop -d 'Detach from the processes of a session and complete its trace'
complete -c xheap -n __fish_use_subcommand -a launch -d 'Run a command in a session'
complete -c xheap -n __fish_use_subcommand -a merge -d 'Merge several traces of one machine'
complete -c xheap -n '__fish_seen_subcommand_from merge' -s o -r -F -d 'Write the merged trace to OUT'
complete -c xheap -n __fish_use_subcommand -a top -d 'Show the live blocks of a session, refreshed in place'
complete -c xheap -n '__fish_seen_subcommand_from update query flush stop launch top' -x -a "(xheap sessions 2>/dev/null | string replace -r ':.*' '')"
complete -c xheap -n '__fish_seen_subcommand_from update' -s p -l pid -x -a '(__fish_complete_pids)' -d 'Record these processes and no others'
complete -c xheap -n '__fish_seen_subcommand_from update' -l add-pid -x -a '(__fish_complete_pids)' -d 'Attach to these processes too'
complete -c xheap -n '__fish_seen_subcommand_from update' -l remove-pid -x -a '(__fish_complete_pids)' -d 'Detach from these processes'
complete -c xheap -n '__fish_seen_subcommand_from update' -l stackwalk -x -a 'HeapAlloc HeapRealloc HeapFree HeapAlloc+HeapRealloc all none' -d 'Record stacks only for these kinds of calls'
complete -c xheap -n '__fish_seen_subcommand_from update' -l on-full -x -a 'wait drop' -d 'Choose what a thread does without a free buffer'
complete -c xheap -n '__fish_seen_subcommand_from update' -l wait-limit -x -d 'Wait at most this long without progress'
complete -c xheap -n '__fish_seen_subcommand_from top' -s s -x -a 'so soc st stc src sp spc stt' -d 'Sort the stacks'
complete -c xheap -n '__fish_seen_subcommand_from top' -o interval -x -d 'Refresh after this many seconds'
complete -c xheap -n '__fish_seen_subcommand_from top' -o count -x -d 'Stop after N views'
complete -c xheap -n '__fish_seen_subcommand_from query' -l threads -d 'Show a row for each live thread'
complete -c xheap -n '__fish_seen_subcommand_from query sessions' -l format -x -a 'text json' -d 'Choose the format'
complete -c xheap -n __fish_use_subcommand -a report -d 'Show the peak, what grows, and findings'
complete -c xheap -n __fish_use_subcommand -a check -d 'Hold limits against traces'
complete -c xheap -n __fish_use_subcommand -a symbols -d 'Store the names of functions and lines in a trace'
complete -c xheap -n __fish_use_subcommand -a recover -d 'Complete the trace of a session whose logger was killed'
complete -c xheap -n __fish_use_subcommand -a heap -d 'Show where the memory went'
complete -c xheap -n __fish_use_subcommand -a diff -d 'Show what changed between two traces'
complete -c xheap -n __fish_use_subcommand -a dump -d 'Print every record of a trace'
complete -c xheap -n __fish_use_subcommand -a info -d 'Describe a trace'
complete -c xheap -n __fish_use_subcommand -a help -d 'Show the help of a command'
complete -c xheap -n __fish_use_subcommand -a version -d 'Print the version'

complete -c xheap -n __xheap_before_command -s o -l output -r -F -d 'Write the trace to FILE'
complete -c xheap -n __xheap_before_command -s p -l pid -x -a '(__fish_complete_pids)' -d 'Attach to running processes'
complete -c xheap -n __xheap_before_command -l duration -x -d 'With --pid, record for this time'
complete -c xheap -n __xheap_before_command -l stackwalk -x -a 'HeapAlloc HeapRealloc HeapFree HeapCreate HeapDestroy HeapLock HeapProtect HeapAlloc+HeapRealloc HeapAlloc+HeapRealloc+HeapFree all none' -d 'Record stacks only for these kinds of calls'
complete -c xheap -n __xheap_before_command -l stack-depth -x -d 'Record at most N frames of a stack'
complete -c xheap -n __xheap_before_command -l no-duration -d 'Do not record how long each call took'
complete -c xheap -n __xheap_before_command -l no-follow -d 'Do not record programs that the command executes'
complete -c xheap -n __xheap_before_command -l until-exit -d 'End the recording when the command ends'
complete -c xheap -n __xheap_before_command -l on-full -x -a 'wait drop' -d 'Choose what a thread does without a free buffer'
complete -c xheap -n __xheap_before_command -l wait-limit -x -d 'Wait at most this long without progress'
complete -c xheap -n __xheap_before_command -l buffer-size -x -d 'Set the size of a buffer'
complete -c xheap -n __xheap_before_command -l min-buffers -x -d 'Let each process keep at least N buffers'
complete -c xheap -n __xheap_before_command -l max-buffers -x -d 'Let each process have at most N buffers'
complete -c xheap -n __xheap_before_command -l sample -x -d 'Record a sample: one byte in BYTES'
complete -c xheap -n __xheap_before_command -l max-file -x -d 'Limit the size of the file or of the kept events'
complete -c xheap -n __xheap_before_command -l file-mode -x -a 'sequential circular append newfile flight none keep-live' -d 'Choose where the events go, and which remain'
complete -c xheap -n __xheap_before_command -l clock -x -a 'auto tsc monotonic' -d 'Choose the clock of the times'
complete -c xheap -n __xheap_before_command -l keep -x -a live -d 'Record a long run: keep live blocks, add up freed ones'
complete -c xheap -n __xheap_before_command -l trigger -x -a 'rss= memory-limit exit crash' -d 'Write a flight recorder to its file on this event'
complete -c xheap -n __xheap_before_command -l permissions -x -d 'Set the octal permissions of the trace'
complete -c xheap -n __xheap_before_command -l flush-timer -x -d 'Write each event to the file after at most this time'
complete -c xheap -n __xheap_before_command -l index -d 'Make the index during the recording'
complete -c xheap -n __xheap_before_command -l real-time -d 'Use a flush timer of 100ms'
complete -c xheap -n __xheap_before_command -l check-stacks -d 'Compare cached stacks with full stack walks'
complete -c xheap -n __xheap_before_command -s q -l quiet -d 'Print only errors and warnings about missing data'
complete -c xheap -n __xheap_before_command -s h -l help -d 'Print the options'
complete -c xheap -n '__fish_seen_subcommand_from record' -a '(__fish_complete_subcommand --fcs-skip=2 -o --output --stackwalk --stack-depth --on-full --wait-limit --buffer-size --min-buffers --max-buffers --sample --max-file --file-mode --keep --clock --trigger --permissions --flush-timer)'

complete -c xheap -n '__fish_seen_subcommand_from recover' -s o -l output -r -F -d 'Write the complete trace to OUT'
complete -c xheap -n '__fish_seen_subcommand_from recover' -l keep -d 'Keep the directory of the session'
complete -c xheap -n '__fish_seen_subcommand_from recover report heap check symbols merge dump info; and not __fish_seen_subcommand_from record' -k -a '(__xheap_traces)'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o stacks -d 'Print a row for each distinct stack'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o frames -d 'Print a row for each function'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o image -d 'Print a row for each executable or library'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o totals -d 'Print only the totals'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o top -x -d 'Print the first N rows'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o range -x -d 'Count allocations that began from T1 to T2'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o inclusive -d 'With -frames: count all allocations below a function'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o heaps -d 'Print a row for each heap'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o innermost -d 'Count annotated blocks instead of those around them'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o tree -d 'Print the call tree'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o callers -x -d 'Print the callers of FUNCTION'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o chains -d 'Print blocks that grew by realloc'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o by -x -a 'process thread heap size lifetime time class' -d 'Split the rows'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o lifetime -x -d 'Count blocks that lived from L1 to L2'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o size -x -d 'Count blocks of S1 to S2 bytes'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o requireFrames -x -d 'Count blocks with one of these frames on the allocating stack'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o requireFreeFrames -x -d 'Count blocks with one of these frames on the freeing stack'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o pids -x -d 'Count blocks of these processes'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o threads -x -d 'Count blocks of these threads'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o heap -x -d 'Count blocks of this heap'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o window -x -a 'AIFI AIFO AOFI AOFO' -d 'Count blocks allocated and freed inside or outside a time'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o closed -d 'Count only freed blocks'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o cullFrames -x -d 'Cull these frames too'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o cullLists -r -F -d 'Cull the frames in these files too'
complete -c xheap -n '__fish_seen_subcommand_from heap report' -o session -x -d 'Read what a session has recorded until now'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o noDefaultCull -d 'Do not use the built-in list of culled functions'
complete -c xheap -n '__fish_seen_subcommand_from heap diff report' -o o -r -F -d 'Write the report to FILE'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o timing -d 'Print the duration of each step'
complete -c xheap -n '__fish_seen_subcommand_from heap diff check info report' -o width -x -d 'Print lines of at most N columns'
complete -c xheap -n '__fish_seen_subcommand_from heap diff check info report' -o fullNames -d 'Print names whole'
complete -c xheap -n '__fish_seen_subcommand_from heap diff check report' -o allFrames -d 'Print every frame of a stack'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o lines -d 'Distinguish calls by source line'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o format -x -a 'text csv json folded' -d 'Choose the format'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o reverse -d 'With -format folded: the innermost frame first'
complete -c xheap -n '__fish_seen_subcommand_from heap diff' -o defaultCull -d 'Use the built-in list with -format folded too'
complete -c xheap -n '__fish_seen_subcommand_from diff' -o normalise -x -a 'time count' -d 'Make the sides comparable'
complete -c xheap -n '__fish_seen_subcommand_from diff' -o fail-above -x -d 'Exit with 1 if the total grows by more'
complete -c xheap -n '__fish_seen_subcommand_from diff' -o fail-frames -x -d 'Also if a row with one of these frames does'
complete -c xheap -n '__fish_seen_subcommand_from check' -l budget -r -F -d 'Read the limits from FILE'
complete -c xheap -n '__fish_seen_subcommand_from check' -l update -d 'Write the figures to the budget'
complete -c xheap -n '__fish_seen_subcommand_from check' -l fail-above -x -d 'Compare with the traces before'
complete -c xheap -n '__fish_seen_subcommand_from check' -l by -x -a 'total function' -d 'Also compare each function'
complete -c xheap -n '__fish_seen_subcommand_from check' -l least -x -d 'A function may have this much'
complete -c xheap -n '__fish_seen_subcommand_from check' -l strict -d 'Fail for everything that is not ok'
complete -c xheap -n '__fish_seen_subcommand_from check' -l allow-incomplete -d 'Accept traces that lack calls'
complete -c xheap -n '__fish_seen_subcommand_from check' -l top -x -d 'Show the first N stacks of each exceeded limit'
complete -c xheap -n '__fish_seen_subcommand_from check' -l junit -r -F -d 'Write the result as XML of JUnit'
complete -c xheap -n '__fish_seen_subcommand_from check' -l github -d 'Print annotations for GitHub'
complete -c xheap -n '__fish_seen_subcommand_from check' -l format -x -a 'text json' -d 'Choose the format'
complete -c xheap -n '__fish_seen_subcommand_from report' -o more -d 'Print all lists'
complete -c xheap -n '__fish_seen_subcommand_from report' -o shortLived -x -d 'The lifetime below which blocks are short-lived'
complete -c xheap -n '__fish_seen_subcommand_from report' -o format -x -a 'text json' -d 'Choose the format'
complete -c xheap -n '__fish_seen_subcommand_from symbols' -o threads -x -d 'Use N threads'
complete -c xheap -n '__fish_seen_subcommand_from symbols' -o again -d 'Look up all addresses again'
complete -c xheap -n '__fish_seen_subcommand_from symbols' -o noCache -d 'Do not use the cache of earlier results'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o events -d 'Print every heap call in the order of time'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o allocations -d 'Print every block'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o memory -d 'Print the resident memory of each process'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o stacks -d 'Print the tree of stacks'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o wholeStacks -d 'With -stacks: add the text of the whole stack'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o images -d 'Print the mappings of executables and libraries'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o processes -d 'Print the processes and their ends'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o range -x -d 'Print events from T1 to T2'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o format -x -a 'text csv json' -d 'Choose the format'
complete -c xheap -n '__fish_seen_subcommand_from info' -o format -x -a 'text json' -d 'Choose the format'
complete -c xheap -n '__fish_seen_subcommand_from help' -a 'record start update query sessions flush stop launch top merge symbols report recover heap diff check dump info'

# SPDX-License-Identifier: MIT
# Completion of xheap for fish.

function __xheap_traces
    __fish_complete_suffix .xht
end

# Whether the command of record still has to come: then its options may, too.
function __xheap_before_command
    set -l words (commandline -opc)
    test "$words[2]" = record; or return 1
    set -l is_value 0
    for word in $words[3..-1]
        if test $is_value = 1
            set is_value 0
        else if contains -- $word -o --output -p --pid --duration --stackwalk --stack-depth --on-full --wait-limit --buffer-size --min-buffers --max-buffers --sample --max-file --file-mode --clock --trigger --permissions --flush-timer
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
complete -c xheap -n __fish_use_subcommand -a start -d 'Begin a session of processes that run'
complete -c xheap -n __fish_use_subcommand -a update -d 'Change what a session records'
complete -c xheap -n __fish_use_subcommand -a query -d 'Say what a session has recorded'
complete -c xheap -n __fish_use_subcommand -a sessions -d 'List the sessions'
complete -c xheap -n __fish_use_subcommand -a flush -d 'Write all that a session has recorded so far'
complete -c xheap -n __fish_use_subcommand -a stop -d 'Let go of a session\'s processes and end its trace'
complete -c xheap -n __fish_use_subcommand -a launch -d 'Run a command in a session'
complete -c xheap -n __fish_use_subcommand -a merge -d 'Several traces of one machine as one'
complete -c xheap -n '__fish_seen_subcommand_from merge' -s o -r -F -d 'Write there'
complete -c xheap -n __fish_use_subcommand -a top -d 'The heaviest stacks of a session, refreshed'
complete -c xheap -n '__fish_seen_subcommand_from update query flush stop launch top' -x -a "(xheap sessions 2>/dev/null | string replace -r ':.*' '')"
complete -c xheap -n '__fish_seen_subcommand_from start update' -s p -l pid -x -a '(__fish_complete_pids)' -d 'Processes'
complete -c xheap -n '__fish_seen_subcommand_from update' -l add-pid -x -a '(__fish_complete_pids)' -d 'Record these, too'
complete -c xheap -n '__fish_seen_subcommand_from update' -l remove-pid -x -a '(__fish_complete_pids)' -d 'Let go of these'
complete -c xheap -n '__fish_seen_subcommand_from query' -l threads -d 'Each thread that lives, too'
complete -c xheap -n '__fish_seen_subcommand_from query sessions' -l format -x -a 'text json' -d 'Form of the output'
complete -c xheap -n __fish_use_subcommand -a report -d 'The first answer: the peak, who allocates most'
complete -c xheap -n __fish_use_subcommand -a symbols -d 'Put the names of a trace\'s code into it'
complete -c xheap -n __fish_use_subcommand -a recover -d 'Complete the trace of a session whose logger was killed'
complete -c xheap -n __fish_use_subcommand -a heap -d 'Show where the memory went'
complete -c xheap -n __fish_use_subcommand -a dump -d 'Print all that a trace holds'
complete -c xheap -n __fish_use_subcommand -a info -d 'Say what is in a trace'
complete -c xheap -n __fish_use_subcommand -a help -d 'Say how to use a command'
complete -c xheap -n __fish_use_subcommand -a version -d 'Print the version'

complete -c xheap -n __xheap_before_command -s o -l output -r -F -d 'Write the trace to FILE'
complete -c xheap -n __xheap_before_command -s p -l pid -x -a '(__fish_complete_pids)' -d 'Record processes that run'
complete -c xheap -n __xheap_before_command -l duration -x -d 'With --pid: record for so long'
complete -c xheap -n __xheap_before_command -l stackwalk -x -a 'HeapAlloc HeapRealloc HeapFree HeapCreate HeapDestroy HeapLock HeapProtect HeapAlloc+HeapRealloc HeapAlloc+HeapRealloc+HeapFree all none' -d 'Stacks only on these calls'
complete -c xheap -n __xheap_before_command -l stack-depth -x -d 'At most N frames of a stack'
complete -c xheap -n __xheap_before_command -l no-duration -d 'Do not record how long each call took'
complete -c xheap -n __xheap_before_command -l no-follow -d 'Do not trace what the command executes'
complete -c xheap -n __xheap_before_command -l until-exit -d 'End when the command does'
complete -c xheap -n __xheap_before_command -l on-full -x -a 'wait drop' -d 'When buffers run out'
complete -c xheap -n __xheap_before_command -l wait-limit -x -d 'Wait no longer than this without progress'
complete -c xheap -n __xheap_before_command -l buffer-size -x -d 'Bytes of a buffer'
complete -c xheap -n __xheap_before_command -l min-buffers -x -d 'Buffers that a process begins with and keeps'
complete -c xheap -n __xheap_before_command -l max-buffers -x -d 'Most buffers of a process'
complete -c xheap -n __xheap_before_command -l sample -x -d 'Record one block for so many bytes asked for'
complete -c xheap -n __xheap_before_command -l max-file -x -d 'Greatest size of the trace, or of what is kept'
complete -c xheap -n __xheap_before_command -l file-mode -x -a 'sequential circular append newfile flight none keep-live' -d 'What becomes of a large file, and of the past'
complete -c xheap -n __xheap_before_command -l clock -x -a 'auto tsc monotonic' -d 'What times are taken from'
complete -c xheap -n __xheap_before_command -l keep -x -a live -d 'Of a long run: what is live, and sums of the rest'
complete -c xheap -n __xheap_before_command -l trigger -x -a 'rss= memory-limit exit crash' -d 'Write a flight recorder out at this'
complete -c xheap -n __xheap_before_command -l permissions -x -d 'Octal mode of the trace'
complete -c xheap -n __xheap_before_command -l flush-timer -x -d 'What is older is in the file'
complete -c xheap -n __xheap_before_command -l index -d 'Make the index meanwhile'
complete -c xheap -n __xheap_before_command -l real-time -d 'A flush timer of 100ms'
complete -c xheap -n __xheap_before_command -l check-stacks -d 'Compare every remembered stack with a full walk'
complete -c xheap -n __xheap_before_command -s q -l quiet -d 'Print nothing but errors and what the trace lacks'
complete -c xheap -n __xheap_before_command -s h -l help -d 'Show the options'
complete -c xheap -n '__fish_seen_subcommand_from record' -a '(__fish_complete_subcommand --fcs-skip=2 -o --output --stackwalk --stack-depth --on-full --wait-limit --buffer-size --min-buffers --max-buffers --sample --max-file --file-mode --keep --clock --trigger --permissions --flush-timer)'

complete -c xheap -n '__fish_seen_subcommand_from recover' -s o -l output -r -F -d 'Write the complete trace to OUT'
complete -c xheap -n '__fish_seen_subcommand_from recover' -l keep -d 'Do not remove the session\'s directory'
complete -c xheap -n '__fish_seen_subcommand_from recover report heap symbols dump info; and not __fish_seen_subcommand_from record' -k -a '(__xheap_traces)'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o stacks -d 'One row per distinct stack'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o frames -d 'One row per function'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o image -d 'One row per executable or library'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o totals -d 'Only the totals'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o top -x -d 'The first N rows'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o range -x -d 'Allocations that began from T1 to T2'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o inclusive -d 'With -frames: functions anywhere on the stacks'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o heaps -d 'One row per heap'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o innermost -d 'Blocks in place of those that they lie in'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o tree -d 'Who called whom'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o callers -x -d 'Who called FUNCTION'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o chains -d 'Blocks that grew by realloc'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o by -x -a 'process thread heap size lifetime time class' -d 'Split rows'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o lifetime -x -d 'That lived from L1 to L2'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o size -x -d 'Of S1 to S2 bytes'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o requireFrames -x -d 'With one of these frames'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o requireFreeFrames -x -d 'Freed with one of these frames'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o pids -x -d 'Of these processes'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o threads -x -d 'Of these threads'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o heap -x -d 'Of this heap'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o window -x -a 'AIFI AIFO AOFI AOFO' -d 'Allocated, freed inside or outside of a window'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o closed -d 'Only what was given back'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o cullFrames -x -d 'Take these frames off stacks'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o cullLists -r -F -d 'Take the frames of these files off stacks'
complete -c xheap -n '__fish_seen_subcommand_from heap report' -o session -x -d 'What a session has recorded up to now'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o noDefaultCull -d 'Leave the built-in list out'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o o -r -F -d 'Write the report to FILE'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o timing -d 'Tell what took how long'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o lines -d 'Tell functions apart by line'
complete -c xheap -n '__fish_seen_subcommand_from heap' -o format -x -a 'text csv json' -d 'Form of the report'
complete -c xheap -n '__fish_seen_subcommand_from symbols' -o threads -x -d 'So many at a time'
complete -c xheap -n '__fish_seen_subcommand_from symbols' -o again -d 'Look anew'
complete -c xheap -n '__fish_seen_subcommand_from symbols' -o noCache -d 'Do without what was found before'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o events -d 'Every heap call in the order of time'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o allocations -d 'Every block'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o memory -d 'What was resident of each process'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o stacks -d 'The tree of stacks'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o wholeStacks -d 'The text of each whole stack'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o images -d 'Which file lay where'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o processes -d 'Processes and how they ended'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o range -x -d 'Events from T1 to T2'
complete -c xheap -n '__fish_seen_subcommand_from dump' -o format -x -a 'text csv json' -d 'Form of the output'
complete -c xheap -n '__fish_seen_subcommand_from info' -o format -x -a 'text json' -d 'Form of the output'
complete -c xheap -n '__fish_seen_subcommand_from help' -a 'record report recover heap symbols dump info'

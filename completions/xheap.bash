# SPDX-License-Identifier: MIT
# Completion of xheap for bash.

# Offer the words of the list $1 that begin with $2.
_xheap_reply() {
	COMPREPLY=($(compgen -W "$1" -- "$2"))
}

# Offer traces, and directories that may contain them.
_xheap_traces() {
	local IFS=$'\n'
	compopt -o filenames 2>/dev/null
	COMPREPLY=($(compgen -f -X '!*.xht' -- "$1") $(compgen -d -- "$1"))
}

# Print the option $1 with one dash. Without a dash it is a word that may have an option's name, such as heap.
_xheap_option() {
	case $1 in
	--*) echo "${1#-}" ;;
	*) echo "$1" ;;
	esac
}

# Offer the options of record and start, or the values of the option $2.
_xheap_recording() {
	case $2 in
	-o | --output) compopt -o default 2>/dev/null ;;
	--stackwalk) _xheap_reply "HeapAlloc HeapRealloc HeapFree HeapCreate HeapDestroy HeapLock HeapProtect HeapAlloc+HeapRealloc HeapAlloc+HeapRealloc+HeapFree all none" "$1" ;;
	--on-full) _xheap_reply "wait drop" "$1" ;;
	--file-mode) _xheap_reply "sequential circular append newfile flight none keep-live" "$1" ;;
	--keep) _xheap_reply "live" "$1" ;;
	--clock) _xheap_reply "auto tsc monotonic" "$1" ;;
	--index) _xheap_reply "always idle never" "$1" ;;
	--trigger) _xheap_reply "rss= memory-limit exit crash" "$1" ;;
	-p | --pid) _xheap_reply "$(ps -u "$(id -u)" -o pid= 2>/dev/null)" "$1" ;;
	--duration | --stack-depth | --wait-limit | --buffer-size | --min-buffers | --max-buffers | --sample | --max-file | --permissions | --flush-timer | --generations) ;;
	*) _xheap_reply "-o --output -p --pid --duration --stackwalk --stack-depth --no-duration --no-follow --until-exit --python-objects --on-full --wait-limit --buffer-size --min-buffers --max-buffers --sample --max-file --file-mode --keep --clock --trigger --permissions --flush-timer --generations --late-file --index --real-time --check-stacks --jit-names --quiet --help" "$1" ;;
	esac
}

_xheap_record() {
	local current=$1 previous=$2 word i=2
	local taking=" -o --output -p --pid --duration --stackwalk --stack-depth --on-full --wait-limit --buffer-size --min-buffers --max-buffers --sample --max-file --file-mode --keep --clock --trigger --permissions --flush-timer --generations "

	# The first word that is no option begins the command line of the recorded program.
	while [ "$i" -lt "$COMP_CWORD" ]; do
		word=${COMP_WORDS[i]}
		case $word in
		--) i=$((i + 1)); break ;;
		--index) case ${COMP_WORDS[i + 1]} in always | idle | never) i=$((i + 1)) ;; esac ;;
		-*) case $taking in *" $word "*) i=$((i + 1)) ;; esac ;;
		*) break ;;
		esac
		i=$((i + 1))
	done
	if [ "$i" -lt "$COMP_CWORD" ] || { [ "$i" -eq "$COMP_CWORD" ] && [ "${current#-}" = "$current" ]; }; then
		if declare -F _command_offset >/dev/null; then
			_command_offset "$i"
		elif [ "$i" -eq "$COMP_CWORD" ]; then
			COMPREPLY=($(compgen -c -- "$current"))
		else
			compopt -o default 2>/dev/null
		fi
		return
	fi
	_xheap_recording "$current" "$previous"
}

_xheap_recover() {
	case $2 in
	-o | --output) compopt -o default 2>/dev/null ;;
	*) case $1 in
		-*) _xheap_reply "-o --output --keep --help" "$1" ;;
		*) _xheap_traces "$1" ;;
		esac ;;
	esac
}

_xheap_heap() {
	local options="-stacks -frames -inclusive -image -heaps -tree -callers -chains -totals -map -session -by -top -range -at -lifetime -size \
		-requireFrames -requireFreeFrames -pids -threads -heap -innermost -window -closed -cullFrames -cullLists -noDefaultCull -defaultCull -lines -format -reverse -o -noIndex -timing -width -fullNames -allFrames --help"
	case $(_xheap_option "$2") in
	-stacks | -frames | -image | -images | -heaps | -tree | -chains)
		case $1 in
		-*) _xheap_reply "$options" "$1" ;;
		*) _xheap_traces "$1"; COMPREPLY+=($(compgen -W "so soc st stc src sp spc stt" -- "$1")) ;;
		esac ;;
	-width | -top | -range | -at | -lifetime | -size | -callers | -requireF* | -cullFrames | -pids | -threads | -heap) ;;
	-by) _xheap_reply "process thread heap size lifetime time class" "$1" ;;
	-window) _xheap_reply "AIFI AIFO AOFI AOFO AIFI+AIFO AIFO+AOFI" "$1" ;;
	-cullLists) COMPREPLY=($(compgen -W "allocators c containers rust" -- "$1") $(compgen -f -- "$1")) ;;
	-o) COMPREPLY=($(compgen -f -- "$1")) ;;
	-format) _xheap_reply "text csv json folded" "$1" ;;
	*) case $1 in
		-*) _xheap_reply "$options" "$1" ;;
		*) _xheap_traces "$1" ;;
		esac ;;
	esac
}

_xheap_check() {
	case $2 in
	--budget | --junit) compopt -o default 2>/dev/null; COMPREPLY=($(compgen -f -- "$1")) ;;
	--by) _xheap_reply "total function" "$1" ;;
	--top | --fail-above | --outstanding-above | --least | --width) ;;
	--format) _xheap_reply "text json" "$1" ;;
	*) case $1 in
		-*) _xheap_reply "--budget --update --fail-above --outstanding-above --by --least --strict --allow-incomplete --top --junit --github --format --noIndex --width --fullNames --allFrames --help" "$1" ;;
		*) _xheap_traces "$1" ;;
		esac ;;
	esac
}

_xheap_diff() {
	local options="-stacks -frames -inclusive -image -tree -callers -totals -by -top -normalise -fail-above -fail-frames -range -lifetime -size \
		-requireFrames -requireFreeFrames -pids -threads -heap -innermost -window -closed -cullFrames -cullLists -noDefaultCull -defaultCull -lines -format -reverse -o -noIndex -width -fullNames -allFrames --help"
	case $(_xheap_option "$2") in
	-normalise) _xheap_reply "time count" "$1" ;;
	-fail-*) ;;
	*) case $1 in
		-*) _xheap_reply "$options" "$1" ;;
		*) _xheap_heap "$1" "$2" ;;
		esac ;;
	esac
}

_xheap_dump() {
	case $2 in
	-o) compopt -o default 2>/dev/null ;;
	-range | --range | -at | --at) ;;
	-format | --format) _xheap_reply "text csv json" "$1" ;;
	*) case $1 in
		-*) _xheap_reply "-events -allocations -stacks -wholeStacks -images -processes -memory -mappings -range -at -format -o -noIndex --help" "$1" ;;
		*) _xheap_traces "$1" ;;
		esac ;;
	esac
}

_xheap_export() {
	local options="-format -o -shortNames -by -timing -range -at -lifetime -size -requireFrames -requireFreeFrames -pids -threads -heap -innermost \
		-window -closed -cullFrames -cullLists -noDefaultCull -defaultCull -lines -session -noIndex --help"
	case $(_xheap_option "$2") in
	-format) _xheap_reply "pprof otlp speedscope callgrind firefox heaptrack dhat folded" "$1" ;;
	*)
		case $1 in
		-*) _xheap_reply "$options" "$1" ;;
		*) _xheap_heap "$1" "$2" ;;
		esac ;;
	esac
}

_xheap_dx() {
	case $2 in
	-gc | --gc | -c | -r | -memory | --memory) ;;
	-session | --session) _xheap_reply "$(xheap sessions 2>/dev/null | sed -n 's/^\([^:]*\):.*/\1/p')" "$1" ;;
	-format | --format) _xheap_reply "text csv json" "$1" ;;
	-f) COMPREPLY=($(compgen -f -- "$1")) ;;
	*) case $1 in
		-*) _xheap_reply "-g -gc -c -n -v -h -explain -r -extra -f -memory -noPlan -format -session -noIndex --help" "$1" ;;
		*) _xheap_traces "$1" ;;
		esac ;;
	esac
}

_xheap_info() {
	case $2 in
	-width | --width) ;;
	-format | --format) _xheap_reply "text json" "$1" ;;
	*) case $1 in
		-*) _xheap_reply "-format -width -fullNames --help" "$1" ;;
		*) _xheap_traces "$1" ;;
		esac ;;
	esac
}

# Offer the names of sessions, then the options of the command.
_xheap_session() {
	if [ "$COMP_CWORD" -eq 2 ]; then
		[ "$1,${2#-}" = "$1,$2" ] || [ "$1" = push ] || { _xheap_reply "--help" "$2"; return; }
		[ "$1" = start ] || [ "${2#-}" != "$2" ] || _xheap_reply "$(xheap sessions 2>/dev/null | sed -n 's/^\([^:]*\):.*/\1/p')" "$2"
		[ "${2#-}" != "$2" ] || return
	fi
	case $1 in
	start)
		case $3 in
		--push) _xheap_reply "otlp+http:// otlp+https:// pyroscope+http:// pyroscope+https:// clickhouse+http:// clickhouse+https:// file:" "$2" ;;
		--token-file) COMPREPLY=($(compgen -f -- "$2")) ;;
		--push-every | --service | --label) ;;
		*)
			_xheap_recording "$2" "$3"
			case $2 in -*) COMPREPLY+=($(compgen -W "--push --push-every --service --label --token-file" -- "$2")) ;; esac ;;
		esac ;;
	push)
		case $3 in
		--token-file | --queue | --trace) COMPREPLY=($(compgen -f -- "$2")) ;;
		--every | --service | --label | --queue-size) ;;
		*)
			case $2 in
			-*) _xheap_reply "--every --service --label --token-file --queue --queue-size --lines --wait --once --trace --registered -q --quiet --help" "$2" ;;
			*) _xheap_reply "otlp+http:// otlp+https:// pyroscope+http:// pyroscope+https:// clickhouse+http:// clickhouse+https:// file:" "$2" ;;
			esac ;;
		esac ;;
	update)
		case $3 in
		-p | --pid | --add-pid | --remove-pid) _xheap_reply "$(ps -u "$(id -u)" -o pid= 2>/dev/null)" "$2" ;;
		--stackwalk | --on-full) _xheap_recording "$2" "$3" ;;
		*) _xheap_reply "-p --pid --add-pid --remove-pid --stackwalk --on-full --wait-limit --help" "$2" ;;
		esac ;;
	query) [ "$3" = --format ] && _xheap_reply "text json" "$2" || _xheap_reply "--threads --format --help" "$2" ;;
	top)
		case $3 in
		-s) _xheap_reply "so soc st stc src sp spc stt sg sr sn" "$2" ;;
		-interval | -count) ;;
		*) _xheap_reply "-s -interval -count --help" "$2" ;;
		esac ;;
	stop) _xheap_reply "-q --quiet --help" "$2" ;;
	launch) COMPREPLY=($(compgen -c -- "$2")) ;;
	esac
}

# Offer what follows xheap fleet.
_xheap_fleet() {
	if [ "$COMP_CWORD" -eq 2 ]; then
		_xheap_reply "top diff growth hosts versions sql init load --help" "$1"
		return
	fi
	case $2 in
	--by) [ "${COMP_WORDS[2]}" = diff ] && _xheap_reply "stack function service" "$1" || _xheap_reply "stack function service host" "$1" ;;
	--format) _xheap_reply "text csv json" "$1" ;;
	--token-file | --html) COMPREPLY=($(compgen -f -- "$1")) ;;
	--after | --before | --fail-above | --last | --until | --timeout | --service | --host | --version | --top | --width | --cluster | --keep) ;;
	*)
		case $1 in
		-*)
			local options="--last --until --service --host --version --token-file --timeout --top --format --width --fullNames --help"
			case ${COMP_WORDS[2]} in
			top) options="--by --html $options" ;;
			growth) options="--by $options" ;;
			diff) options="--by --after --before --fail-above $options" ;;
			init) options="--cluster --keep --token-file --timeout --help" ;;
			load) options="--service --host --version --token-file --timeout --help" ;;
			sql) options="--by --html --after --before --fail-above $options" ;;
			esac
			_xheap_reply "$options" "$1" ;;
		*) [ "$2" = sql ] && _xheap_reply "top diff growth hosts versions" "$1" || _xheap_traces "$1" ;;
		esac ;;
	esac
}

# Offer what follows xheap image.
_xheap_image() {
	if [ "$COMP_CWORD" -eq 2 ]; then
		_xheap_reply "add list show remove enable disable watch --help" "$1"
		return
	fi
	case ${COMP_WORDS[2]} in
	add)
		case $1 in
		-*) _xheap_reply "--service --session --output --user --owner --arguments --cgroup --first --every --for --privileged --scripts --force --tracing-flags --push --push-every --label --token-file --help" "$1" ;;
		*) COMPREPLY=($(compgen -c -f -- "$1")) ;;
		esac ;;
	list) _xheap_reply "--format --help" "$1" ;;
	watch) _xheap_reply "--below --deadline --boot --help" "$1" ;;
	*) _xheap_reply "--all --help $(xheap image list 2>/dev/null | sed -n 's/^\([^ ].*\): .* traced.*/\1/p')" "$1" ;;
	esac
}

# Offer what follows xheap autologger.
_xheap_autologger() {
	# made from src/autologger/autologger_values.h by tests/cli/autologger_values --update
	local options="--Guid --Start --Boot --BufferSize --MinimumBuffers --MaximumBuffers --MaxFileSize --LogFileMode --FileName --FileMax --FlushTimer --ClockType --DisableRealtimePersistence --StackWalkingFilter --EnableFlags --AllProcesses --SampleSize --PythonObjects --Push --all --help"
	# end of autologger_values
	if [ "$COMP_CWORD" -eq 2 ]; then
		_xheap_reply "add list show enable disable remove run stop --help" "$1"
		return
	fi
	case ${COMP_WORDS[2]},$2 in
	add,--FileName) COMPREPLY=($(compgen -f -- "$1")) ;;
	add,*) _xheap_reply "$options" "$1" ;;
	list,--format) _xheap_reply "text json" "$1" ;;
	list,*) _xheap_reply "--format --help" "$1" ;;
	*) _xheap_reply "--all --boot --init --help $(ls /etc/xheap/autologger.d 2>/dev/null | sed -n 's/\.conf$//p')" "$1" ;;
	esac
}

# Offer what follows xheap boottrace.
_xheap_boottrace() {
	case $2 in
	-trace) _xheap_reply "command service: boot" "$1" ;;
	-resultPath) COMPREPLY=($(compgen -d -- "$1")) ;;
	-numRuns | -runTag | -postBootDelay) ;;
	-preTraceCmd | -callBack | --) COMPREPLY=($(compgen -c -- "$1")) ;;
	*) _xheap_reply "-trace -numRuns -resultPath -runTag -preTraceCmd -postBootDelay -callBack -remove -yes --help" "$1" ;;
	esac
}

_xheap() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_xheap_reply "record start update query sessions flush stop launch push fleet image autologger boottrace top report view recover heap diff check explain leaks why symbols merge clean dump export dx info help version" "$current"
		return
	fi
	case ${COMP_WORDS[1]} in
	record) _xheap_record "$current" "$previous" ;;
	start | update | query | flush | stop | launch | push | top) _xheap_session "${COMP_WORDS[1]}" "$current" "$previous" ;;
	fleet) _xheap_fleet "$current" "$previous" ;;
	image) _xheap_image "$current" "$previous" ;;
	autologger) _xheap_autologger "$current" "$previous" ;;
	boottrace) _xheap_boottrace "$current" "$previous" ;;
	sessions) _xheap_reply "--all --format --help" "$current" ;;
	recover) _xheap_recover "$current" "$previous" ;;
	heap) _xheap_heap "$current" "$previous" ;;
	check) _xheap_check "$current" "$previous" ;;
	diff) _xheap_diff "$current" "$previous" ;;
	merge)
		case $current in
		-*) _xheap_reply "-o --help" "$current" ;;
		*) _xheap_traces "$current" ;;
		esac ;;
	clean)
		case $current in
		-*) _xheap_reply "-n -dryRun -symbols --help" "$current" ;;
		*) _xheap_traces "$current" ;;
		esac ;;
	symbols)
		case $current in
		-*) _xheap_reply "-threads -again -noCache --help" "$current" ;;
		*) _xheap_traces "$current" ;;
		esac ;;
	report)
		case $previous,$current in
		-format,* | --format,*) _xheap_reply "text json html" "$current" ;;
		*,-*) _xheap_reply "-top -more -shortLived -noDefaultCull -range -at -lifetime -size -requireFrames -requireFreeFrames -pids -threads -heap -innermost -window -closed -format -o -session -noIndex -width -fullNames -allFrames --help" "$current" ;;
		*) _xheap_traces "$current" ;;
		esac ;;
	why)
		case $previous,$current in
		-format,* | --format,*) _xheap_reply "text json" "$current" ;;
		-at,* | --at,*) _xheap_reply "peak end" "$current" ;;
		-o,* | --o,*) COMPREPLY=($(compgen -f -- "$current")) ;;
		*,-*) _xheap_reply "-p -pid -at -top -format -o -session -noIndex -width -fullNames -allFrames --help" "$current" ;;
		*) _xheap_traces "$current" ;;
		esac ;;
	leaks)
		case $previous,$current in
		-format,* | --format,*) _xheap_reply "text json" "$current" ;;
		-o,* | --o,*) COMPREPLY=($(compgen -f -- "$current")) ;;
		*,-*) _xheap_reply "-p -session -stop -looks -every -at-end -trace -top -range -lifetime -size -requireFrames -requireFreeFrames -pids -threads -heap -window -closed -format -o -noIndex -width -fullNames -allFrames --help" "$current" ;;
		*) COMPREPLY=($(compgen -f -- "$current")) ;;
		esac ;;
	explain)
		case $previous,$current in
		-format,* | --format,*) _xheap_reply "text json" "$current" ;;
		-o,* | --o,*) COMPREPLY=($(compgen -f -- "$current")) ;;
		*,-*) _xheap_reply "-trace -p -pid -at -format -o -session -noIndex -width -fullNames -allFrames --help" "$current" ;;
		*) _xheap_traces "$current" ;;
		esac ;;
	view)
		case $current in
		-*) _xheap_reply "--session --port --open --no-open --idle --html --limit -noIndex --help" "$current" ;;
		*) _xheap_traces "$current" ;;
		esac ;;
	dump) _xheap_dump "$current" "$previous" ;;
	export) _xheap_export "$current" "$previous" ;;
	dx) _xheap_dx "$current" "$previous" ;;
	info) _xheap_info "$current" "$previous" ;;
	help)
		case $previous in
		fleet) _xheap_reply "top diff growth hosts versions sql init load" "$current" ;;
		image) _xheap_reply "add list show remove enable disable watch" "$current" ;;
		autologger) _xheap_reply "add list show enable disable remove run stop" "$current" ;;
		*) _xheap_reply "record start update query sessions flush stop launch push fleet image autologger boottrace top report view recover heap diff check explain leaks why symbols merge clean dump export dx info version --help" "$current" ;;
		esac ;;
	version) _xheap_reply "--help" "$current" ;;
	esac
}

complete -F _xheap xheap

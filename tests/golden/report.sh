# SPDX-License-Identifier: MIT
export LC_ALL=C
"$BUILD/tests/golden/make_trace" plain plain.xht
"$BUILD/tests/golden/make_trace" losses losses.xht
"$XHEAP" report plain.xht
"$XHEAP" report losses.xht
"$BUILD/tests/golden/make_trace" growing growing.xht
"$BUILD/tests/golden/make_trace" forks forks.xht
"$XHEAP" report growing.xht
# No stack of a function grows for the whole time, but the function does.
"$BUILD/tests/golden/make_trace" turns turns.xht
"$XHEAP" report turns.xht | sed -n '/^Growth/,/^$/p'
"$XHEAP" report growing.xht -more -top 2 -shortLived 1us -requireFrames app+0x4000
"$XHEAP" report forks.xht -range 0 5us
"$XHEAP" report forks.xht -width 62 | sed -n '/^Processes/,$p'
"$BUILD/tests/golden/make_trace" resident resident.xht
"$XHEAP" report resident.xht
"$XHEAP" report resident.xht -more -width 200 | sed -n '/Resident/p'
"$XHEAP" report resident.xht -format json | sed -n '/"resident": {/,/^ }/p'
"$BUILD/tests/golden/make_trace" growths growths.xht
"$XHEAP" report growths.xht -top 1 | sed -n '/^Growth/,/^$/p'
"$XHEAP" report growths.xht -top 2 | sed -n '/^Growth/,/^$/p'
"$BUILD/tests/golden/make_trace" limited limited.xht
"$XHEAP" report limited.xht | sed -n '/^Growth/,/^$/p'
"$XHEAP" report limited.xht -format json | sed -n '/"forecast": {/,/^  }/p'
# What a program frees for a while before it exits had grown; one that is idle before it does so had stopped.
"$BUILD/tests/golden/make_trace" cleaned cleaned.xht
for i in 1 2; do
	"$XHEAP" report cleaned.xht | sed -n '/^Growth/,/^  *xheap/p'
done
"$XHEAP" report cleaned.xht -format json | sed -n '/"notes"/,/]/p;/"verdict"/p'
"$BUILD/tests/golden/make_trace" idle idle.xht
"$XHEAP" report idle.xht | sed -n '/^Growth/,/^$/p'
# A growth of less than 1 % of the peak and 1 KiB a second is none if the program exited.
"$BUILD/tests/golden/make_trace" exited exited.xht
"$XHEAP" report exited.xht | sed -n '/^Peak/,/^All/p'
"$XHEAP" report exited.xht -format json | sed -n '/"verdict"/p'
"$XHEAP" report exited.xht -range 30s 60s | sed -n '/^Growth/,/^All/p'
"$XHEAP" info limited.xht -format json | sed -n 's/.*"memory_limits": \(.*}\)}.*/\1/p'
"$XHEAP" report limited.xht | sed -n '/^Findings/,/ xheap heap/p'
# Where growth is known in part only, the report says so.
for trace in kept sampled circular; do
	cp "$SOURCE/tests/older/$trace.xht" .
	"$XHEAP" report $trace.xht | sed -n '/^Growth/,/^$/p'
	"$XHEAP" report $trace.xht -format json | sed -n '/"growth": {/,/"rows"/p'
done
# Methods that a JVM interprets are one row, without the packages that come with it; one that has a name has them, too.
"$BUILD/tests/golden/make_trace" interpreted interpreted.xht
"$XHEAP" report interpreted.xht | sed -n '/^Peak/,/^$/p'
"$XHEAP" heap interpreted.xht -frames so | sed -n '/^Frames/,$p'
# What a native method of Java's packages calls is the user's method's, but not code of a library that it loads, and not
# where the user's methods have no names.
"$BUILD/tests/golden/make_trace" java_natives java_natives.xht
"$XHEAP" report java_natives.xht -top 7 | sed -n '/^Peak/,/^$/p'
"$XHEAP" report java_natives.xht -top 7 -noDefaultCull | sed -n '/^Peak/,/^$/p'
# A method that is interpreted is not counted for its caller where others have their own names.
"$BUILD/tests/golden/make_trace" java_agent java_agent.xht
"$XHEAP" report java_agent.xht -top 7 | sed -n '/^Peak/,/^$/p'
# A function that a compiler puts into its caller may have the caller's blocks. Where both go on to make some, nothing is
# said.
"$BUILD/tests/golden/make_trace" put_in put_in.xht
"$XHEAP" report put_in.xht | tee first | sed -n '/^Peak/,/^All/p'
# An index keeps the answer.
for _ in made read; do
	XHEAP_INDEX_EVENTS=1 XDG_CACHE_HOME="$PWD/cache" "$XHEAP" report put_in.xht 2>said | cmp first -
	sed 's/index.*/index/' said
done
"$XHEAP" report put_in.xht -format json | sed -n '/"may_be_of"/p' | sort -u
# Names that most of the bytes lack are the first caveat; otherwise they are behind the others.
"$BUILD/tests/golden/make_trace" nameless nameless.xht
"$XHEAP" report nameless.xht | sed -n '2,/^$/p'
"$XHEAP" report nameless.xht -size 0 1000 | sed -n '2,/^$/p'
"$XHEAP" report nameless.xht -size 0 1000 -more | sed -n '2,/^$/p'
# An arena of Python is a block of the line that needed it.
"$BUILD/tests/golden/make_trace" python_arenas python_arenas.xht
"$XHEAP" report python_arenas.xht | sed -n '/^Peak/,/^Never/p'
# Arenas from before an attach are in what the process maps by itself.
"$BUILD/tests/golden/make_trace" python_attached python_attached.xht
"$XHEAP" report python_attached.xht | sed -n '/^Peak/,/^$/p;/not heap, most/,/xheap dump/p'
# Objects in them count in place of the arenas, if nothing else is asked for; the command shows the lines that made them.
# What remains of the arenas and the objects are as much as the arenas, not twice as much.
"$BUILD/tests/golden/make_trace" python_objects python_objects.xht
"$XHEAP" report python_objects.xht
"$XHEAP" report python_objects.xht -format json | sed -n '/"filters"/,/"peak_bytes"/p'
"$XHEAP" report python_objects.xht -range 0 2200 | sed -n '/^Peak/,/^$/p;/is in arenas/,/xheap heap/p'
"$XHEAP" heap python_objects.xht -innermost -frames sp -lines -top 3 | sed -n '/^Frames/,$p'
# Where no stack grows by itself, the process may.
"$BUILD/tests/golden/make_trace" python_spread python_spread.xht
"$XHEAP" report python_spread.xht | sed -n '/^Growth/,/xheap heap/p'
"$XHEAP" report python_spread.xht -format json | sed -n '/"growth": {/,/"stack"/p'

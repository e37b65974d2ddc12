# SPDX-License-Identifier: MIT
# The first line of an answer: what keeps it from having every call, or every block, of the recorded time. A trace without limits has no such line.
for scene in plain forks losses earlier circular sampled; do
	"$BUILD/tests/golden/make_trace" $scene $scene.xht
done
cp "$SOURCE/tests/fuzz/corpus/trace/folded" aggregated.xht
head -c 900 plain.xht >cut.xht
limits() {
	echo "> $*"
	"$XHEAP" dx "$@" 2>&1 | sed -n '1{/^(/p}'
}
questions='Heap() Calls Allocations() Leaks() Largest() FreedByOtherThread() Live() Peak() Growth SlowCalls(1) HeapAnalyze()'
for trace in plain.xht forks.xht losses.xht earlier.xht circular.xht sampled.xht aggregated.xht cut.xht; do
	for question in $questions; do
		case $question in
		Calls) limits $trace '@$cursession.TTD.Calls("*!*")' ;;
		Growth) limits $trace '@$cursession.TTD.Data.Growth(@$position("0:0"))' ;;
		*) limits $trace "@\$cursession.TTD.Data.$question" ;;
		esac
	done
	limits $trace '@$cursession.TTD.Utility.GetHeapAddress(0x10)'
	limits $trace '@$curprocess.Heap'
	limits $trace '@$curprocess.Heaps'
	limits $trace '@$cursession.Processes'
	# Lambdas are called behind the first line.
	limits $trace '@$cursession.Processes.Select(p => p.TTD.Data.Heap().Count())'
	limits $trace '@$cursession.Processes.Select(p => new { L = p.TTD.Data.Leaks(), H = p.Heap.Bytes })'
done
# What is made of a variable has the limits of its value.
printf '@$calls = @$cursession.TTD.Data.Heap()\n@$calls.Count()\n1 + 1\n' | "$XHEAP" dx forks.xht | grep '^(\|Count\|1 + 1'

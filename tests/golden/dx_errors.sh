# SPDX-License-Identifier: MIT
# An element whose condition is an error stands in its place as that error; what counts or keeps elements is then that error, and never a smaller or larger number. Gaps are no elements.
for scene in plain losses; do
	"$BUILD/tests/golden/make_trace" $scene $scene.xht
done
heap='@$cursession.TTD.Data.Heap()'
ask() {
	echo "> $*"
	"$XHEAP" dx "$@" >planned 2>&1
	status=$?
	cat planned
	[ $status = 0 ] || echo "status $status"
	"$XHEAP" dx -noPlan "$@" 2>&1 | cmp - planned
}
# A free has one argument.
wrong="$heap.Where(h => h.Parameters[1] == 200)"
ask plain.xht "$wrong,d,4"
for end in 'Count()' 'Any()' 'Distinct().Count()' 'GroupBy(h => h.Action).Count()' 'GroupBy(h => h.Action).Last().Count()' 'GroupBy(h => h.Action).All(g => g.Any())' 'OrderBy(h => h.Size).Take(2).Count()' 'Skip(3).Count()' 'First()' \
	'Single()' 'Count(h => h.Size > 5)' 'Select(h => h.Size).Contains(5)' 'Aggregate(0, (sum, h) => sum + 1)' "SequenceEqual($heap)" "Except($heap).Count()" "Intersect($heap).Count()" \
	"Join($heap, a => a.Index, b => b.Index, (a, b) => a.Size).Count()" 'Where(h => h.Size > 5).Select(h => 1).Count()'; do
	ask plain.xht "$wrong.$end"
done
ask plain.xht "$heap.Except($wrong).Count()"
ask plain.xht "$heap.TakeWhile(h => h.Parameters[1] == 200).Count()"
ask plain.xht "$heap.SkipWhile(h => h.Parameters[1] != 200).Count()"
ask plain.xht "$heap.Count(h => h.Parameters[1] == 200)"
ask plain.xht "$wrong.AllNonError().Count()"
ask plain.xht "$heap.Where(h => h.Parameters.Count() > 1 && h.Parameters[1] == 200).Count()"
ask plain.xht "$heap.Where(h => 100 / (h.Index - 3) > 9).Count()"
# Values that are errors are elements; but nobody knows which of them are distinct, or groups of their own.
ask plain.xht "$heap.Select(h => h.Parameters[1]).Count(),d"
ask plain.xht "$heap.Select(h => h.Parameters[1]).Distinct().Count()"
ask plain.xht "$heap.GroupBy(h => h.Parameters[1]).Count()"
ask plain.xht -g "$heap.GroupBy(h => h.Parameters[1]).Select(g => new { g.Key, N = g.Count() }),d"
ask plain.xht -g "$wrong.GroupBy(h => h.Action).Select(g => new { g.Key, N = g.Count(), Any = g.Any(), Sum = g.Sum(h => h.Size) }),d"
ask plain.xht "$heap.OrderBy(h => 100 / (h.Index - 3)).Select(h => h.Index).Take(3),d"
for order in OrderBy OrderByDescending; do
	ask plain.xht -g "$heap.GroupBy(h => h.Function).Select(g => new { g.Key, Most = g.Max(h => h.PreviousAddress) }).$order(x => x.Most),d"
done
# Gaps count nowhere, and are shown.
ask losses.xht "$heap.Where(h => h.Size > 0).Select(h => h.Index),d"
ask losses.xht "$heap.Count() == $heap.Count(h => true) && $heap.Where(h => h.Size > 0).Count() == $heap.Count(h => h.Size > 0)"
ask losses.xht "new { All = $heap.Count(), Any = $heap.Where(h => h.Size > 1G).Any(), Free = $heap.Where(h => h.Action == \"Free\").Count() },d"
ask losses.xht -g "$heap.GroupBy(h => h.Action).Select(g => new { g.Key, N = g.Count(), Any = g.Any() }),d"

# SPDX-License-Identifier: MIT
# A call of each action, with all members that it has; the members of calls in a sample.
"$BUILD/tests/golden/make_trace" actions actions.xht
"$BUILD/tests/golden/make_trace" sampled sampled.xht
ask() {
	echo "> $*"
	"$XHEAP" dx "$@" 2>&1
}
ask actions.xht -g '@$cursession.TTD.Data.Heap(false)'
ask actions.xht -r2 '@$cursession.TTD.Data.Heap(false).Select(h => h.Parameters)'
ask actions.xht -g '@$cursession.TTD.Data.Heap(false).Select(h => new { h.Action, h.BaseAddress, h.ReserveSize, h.CommitSize, h.MakeReadOnly, h.Result, h.State })'
ask actions.xht -v '@$cursession.TTD.Data.Heap(false)[0]'
ask actions.xht -g '@$cursession.TTD.Data.Allocations().Select(b => new { b.Address, b.End, b.TimeEnd, By = b.FreeEvent.Action })'
ask actions.xht -g '@$cursession.TTD.Calls("*!*").Select(c => new { c.Function, c.ReturnValue, c.TimeStart, c.TimeEnd })'
ask actions.xht -g '@$curprocess.Heaps'
ask sampled.xht -g '@$cursession.TTD.Data.Heap().Select(h => new { h.Action, h.Size, h.Weight })'
ask sampled.xht -g '@$cursession.TTD.Data.Heap().Select(h => new { h.Action, h.TraceId, h.SpanId })'
ask sampled.xht -g '@$cursession.TTD.Data.Allocations().Select(b => new { b.Size, b.TraceId, b.SpanId })'
ask sampled.xht '@$cursession.TTD.Data.Leaks()'
ask sampled.xht '@$curprocess.Heap'

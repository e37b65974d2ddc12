# SPDX-License-Identifier: MIT
# What somebody types in the first five minutes who knows the documented debuggers: it works, or is answered with what to type.
cp "$SOURCE/tests/golden/traces/c.xht" c.xht
cat > lines.dx <<'END'
.help
?
? 1 + 1
version
vertarget
.time
|
~
~*k
lm
lm m words
x words!*
k
kb
.frame 2
g
p
t
gu
bp main
!analyze -v
!heap -s
!heap -p -a 0x5574140802a0
!address
!peb
!teb
!handle
r
r rax
d 0x5574140802a0
dt words!node
dv
u main
.sympath
.reload
.load ttd
sxe ld
.exr -1
!error 5
!tt 0
!tt 50
!tt 10ms
!tt 100
!positions
dx
dx -?
dx Debugger
dx Debugger.Sessions
dx @$cursession
dx @$cursession.TTD
dx @$curprocess.Modules
dx -r2 @$curprocess.Threads
kd> dx -g @$cursession.TTD.Data.Heap(),3
0: kd> DX @$cursession.TTD.Data.Heap().Count()
0:000> dx @$cursession.TTD.Calls("msvcrt!malloc").Count()
dx @$cursession.TTD.Calls("libc!malloc").Count()
dx @$cursession.TTD.Data.Heap().Where(h => h.Size = 5)
dx @$cursession.TTD.Data.Heap().Where(h => h.action == "alloc")
dx @$cursession.TTD.Data.Heap().Count(h => h.Size > 1KB and h.Action == "Alloc")
dx @$cursession.TTD.Data.Heap().GroupBy(h => h.Size).Select(g => g.Key),3
dx -g @$cursession.TTD.Data.Heap().OrderByDescending(h => h.Size).Take(2)
dx @$big = @$cursession.TTD.Data.Heap().Where(h => h.Size > 1000)
dx @$big.Count()
dx @$curprocess.Environment
dx @rip
dx @$teb
q
END
"$XHEAP" dx c.xht -f lines.dx 2>&1 | sed 's/^xheap: dx: line \([0-9]*\) of lines.dx failed$/(line \1)/'

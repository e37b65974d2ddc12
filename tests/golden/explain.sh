# SPDX-License-Identifier: MIT
for scene in plain forks ended nested earlier; do "$BUILD/tests/golden/make_trace" $scene $scene.xht; done
"$XHEAP" explain plain.xht 0x7f0000010090
"$XHEAP" explain plain.xht 0x7f0000010090 5us -allFrames
"$XHEAP" explain plain.xht 7f0000010094 1388:1
"$XHEAP" explain plain.xht 0x7f0000030010 -at 3.6us
"$XHEAP" explain plain.xht 0x7f0000040010 1us
"$XHEAP" explain forks.xht 0x7f0000020010 -pid 200
"$XHEAP" explain plain.xht 0x7f0000030010 -format json
"$XHEAP" explain plain.xht
"$XHEAP" explain ended.xht
"$XHEAP" explain ended.xht -pid 108 -format json
refused()
{
	"$XHEAP" explain "$@" 2>&1 && return 1
	echo "status $?"
}
refused forks.xht 0x7f0000010010
refused plain.xht 0x10
refused plain.xht 0x7f0000011091
refused plain.xht 0x12345678901234567
refused plain.xht 0x7f0000010090 1us 2us
refused plain.xht 0x7f0000010090 noon
refused plain.xht -at 1us
refused plain.xht -pid 7
refused plain.xht forks.xht

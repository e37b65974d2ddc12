# SPDX-License-Identifier: MIT
for scene in plain resident sampled; do "$BUILD/tests/golden/make_trace" $scene $scene.xht; done
"$XHEAP" why resident.xht
"$XHEAP" why resident.xht -pid 100 -top 1
"$XHEAP" why resident.xht -at 7us -format json
for question in "resident.xht -pid 300" "resident.xht -pid 301" "resident.xht -pid 200 -p 200" "resident.xht -p 1" "-p 200 -pid 200" \
	"resident.xht -at never" plain.xht sampled.xht; do
	"$XHEAP" why $question
	echo "status $?"
done

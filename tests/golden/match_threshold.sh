# SPDX-License-Identifier: MIT
# Whatever the least length of a run that gets a block match, the allocations are the same.
tools=$BUILD/tests/golden
for seed in 1 2 3; do
	"$tools/make_trace" random "random$seed.xht" "$seed" 3000
done
for kind in plain forks together losses earlier untraced circular resident nested growing limited ended actions sampled; do
	"$tools/make_trace" "$kind" "$kind.xht"
done
traces="$(ls "$SOURCE"/tests/golden/traces/*.xht "$SOURCE"/tests/older/*.xht "$SOURCE"/tests/fuzz/corpus/trace/* ./*.xht)"
"$tools/match_each" $traces >each
"$tools/match_usual" $traces >usual
"$tools/match_points" $traces >points
cmp usual each && cmp usual points
grep -c allocations usual
grep invalid usual
true

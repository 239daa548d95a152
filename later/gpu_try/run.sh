#!/bin/bash
# Run in the checkout's root on the GPU machine: bash kernels_gpu/run.sh. Results in $OUT, a short table last. At most 5 minutes.
ROOT=$PWD; HERE=$(cd "$(dirname "$0")" && pwd); OUT=${OUT:-/tmp/out}; W=/tmp/kernels_work; mkdir -p $OUT $W
T0=$(date +%s); now() { echo $(($(date +%s) - T0)); }; say() { echo "[$(now) s] $*"; }
nvidia-smi --query-gpu=name,clocks.sm,clocks.max.sm,driver_version --format=csv,noheader
J=$(nproc)
( make -s -k -f $HERE/sweep.mk ROOT=$ROOT OUT=$W -j$J $W/sweep_new > $OUT/sweep_build.log 2>&1 || tail -3 $OUT/sweep_build.log; say "sweep built" ) & A=$!
( cmake -S . -B $W/gpu -DCMAKE_BUILD_TYPE=Release -DCONVLADDER_BACKEND=gpu -DCMAKE_CUDA_ARCHITECTURES=90 -DCMAKE_PREFIX_PATH=$PWD/.deps/usr > $OUT/cmake.log 2>&1 || tail -5 $OUT/cmake.log
  TESTS=$(ls -d [01][0-9]_*/ | sed 's#/##;s#^#test_#')
  cmake --build $W/gpu -j$((J > 4 ? J - 2 : J)) --target $TESTS convladder > $OUT/build.log 2>&1 || grep -E "error" $OUT/build.log | head -5
  say "suites built: $(ls $W/gpu/bin | grep -c ^test_)" ) & B=$!
wait $A
# Times first, while nothing else uses the GPU (the rest of the build uses the CPU only).
cp common/layers.csv $W/layers.csv
$W/sweep_new $W/layers.csv $OUT/sweep_new.csv ${SECONDS_NEW:-100} forced; say "sweep"
nvidia-smi --query-gpu=clocks.sm,temperature.gpu,clocks_throttle_reasons.active --format=csv,noheader
wait $B
# Suites, four at once, without those that need the memory of the whole card; beside them the sanitizer on 12.
count() { echo "$1 status $2 $(grep -cE '^\[       OK' $OUT/$1.log) ok $(grep -cE '^\[  FAILED  \].*ms\)' $OUT/$1.log) failed $(grep -cE '^\[  SKIPPED \].*ms\)' $OUT/$1.log) skipped" >> $OUT/suites.txt; }
suite() { n=$(basename $1); timeout 60 $1 --gtest_filter='-*EveryLayout*:*BeyondThirtyOneBits*:LimitsTest*:FaultsTest.MemoryThatIsShort*:FaultsTest.ManyCalls*' > $OUT/$n.log 2>&1; count $n $?; }
every() { n=every_$(basename $1); timeout 75 $1 --gtest_filter='*EveryLayout*nasty*' > $OUT/$n.log 2>&1; count $n $?; }
sane() { timeout 75 compute-sanitizer --tool $1 --error-exitcode 86 $W/gpu/bin/convladder check --no-guards --stage $2 --shapes $HERE/small.csv --max-gmac 0.003 > $OUT/san_$1_$2.log 2>&1; echo "$1 $2 status $? $(grep -E 'SUMMARY' $OUT/san_$1_$2.log | tail -1)" >> $OUT/sanitizer.txt; }
export OUT W HERE; export -f count suite every sane
( for s in 12_tensor_cores 13_three_products; do for tool in racecheck memcheck initcheck synccheck; do echo "sane $tool $s"; done; done; for s in 09_tile_sizes 10_sliding_rows 11_split_k; do echo "sane racecheck $s"; done ) | xargs -P 3 -I{} bash -c '{}' & S=$!
ls $W/gpu/bin/test_[01]* | xargs -P 4 -I{} bash -c 'suite {}'; say "suites"
ls $W/gpu/bin/test_09* $W/gpu/bin/test_1[23]* | xargs -P 3 -I{} bash -c 'every {}'
wait $S; say "sanitizer and every layout"
# What needs the whole card's memory, one at a time: all of it of 13 and 12, the rest as long as there is time.
for t in $(ls -r $W/gpu/bin/test_[01]*); do
  [ $(now) -gt ${SECONDS_ALL:-270} ] && { say "limits: no time for $(basename $t) and those before"; break; }
  n=limits_$(basename $t); f='FaultsTest.MemoryThatIsShort*:FaultsTest.ManyCalls*'
  case $t in *test_12*) f="$f:LimitsTest*:*BeyondThirtyOneBits*pixels_and_input:*BeyondThirtyOneBits*output_planes";; esac
  timeout 90 $t --gtest_filter="$f" > $OUT/$n.log 2>&1; count $n $?
done; say "limits"
sort $OUT/suites.txt; sort $OUT/sanitizer.txt | sed 's/=========//'
grep -hE "^\[  FAILED  \].*ms\)" $OUT/*test_*.log | sed 's/ ([0-9]* ms)//' | sort | uniq -c | sort -rn | head -12
( cd $OUT && tar czf logs.tgz *.log *.txt && rm -f *.log *.txt )
python3 $HERE/table.py $OUT $HERE/cudnn.csv $W/layers.csv | tee $OUT/table.txt
say done

#!/bin/bash
# stages2.sh (the layers that the first run left out, the suites of 08 to 13, sanitizer on 13), from a checkout's root on an H200: builds, bench over layers.csv (05 to 13 and cuDNN's five records), ./ladder test on the GPU,
# compute-sanitizer on small problems, what 13 and 12 spill. Files in $OUT; a short table last. At most 9 minutes.
# CMAKE_PREFIX_PATH: where the header-only packages lie.
: "${OUT:?}"; here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
T0=$(date +%s); now() { echo $(($(date +%s) - T0)); }; say() { echo "[$(now) s] $*"; }; left() { l=$(($1 - $(now))); echo $((l > 5 ? l : 5)); }
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm --format=csv,noheader
export CUDAARCHS=90
timeout 60 cmake --preset gpu -DCMAKE_CUDA_ARCHITECTURES=90 >"$OUT/cmake.log" 2>&1 || { tail -15 "$OUT/cmake.log"; }
grep -iE "cudnn" "$OUT/cmake.log" | head -2
# What bench needs first; the tests are built while the GPU is timed, on the cores that it leaves.
timeout 150 cmake --build build/gpu -j"$(nproc)" --target convladder >"$OUT/build.log" 2>&1 || { grep -E "error|FAILED|undefined" "$OUT/build.log" | head -12; }
say "built convladder: $(ls -la build/gpu/bin/convladder 2>&1 | cut -c1-90)"
( nice -n 10 timeout 200 cmake --build build/gpu -j$(($(nproc) - 5)) --target tests >"$OUT/build_tests.log" 2>&1 || { grep -E "error|FAILED|undefined" "$OUT/build_tests.log" | head -12; }; say "built tests: $(ls build/gpu/bin | wc -l) programs" ) & B=$!
wait $B
timeout -s INT "$(left 330)" ./ladder --backend gpu test --stage 08_ordered_stores --stage 09_tile_sizes --stage 10_sliding_rows --stage 11_split_k --stage 12_tensor_cores --stage 13_three_products >"$OUT/test.txt" 2>&1; say "test: status $?"
stages=; for s in 05 06 07 08 09 10 11 12 13; do stages+=" --stage $s"; done
shapes=; for s in fpn_p4_b2 srcnn_conv1_b16 vdsr_body_b64 edsr_body_b16 dcgan_discriminator_conv2_b128 dcgan_discriminator_last_b128 stable_diffusion_in_b2 stable_diffusion_64_b2 stable_diffusion_16_b2 stable_diffusion_8_b2 stable_diffusion_8_up_b2 stable_diffusion_decoder_512_b1 dqn_conv1_b32 dqn_conv2_b32 alphago_zero_body_b8 deepspeech2_conv1_b16 deepspeech2_conv2_b16 wav2vec2_conv3_b4 wav2vec2_positions_b4 whisper_small_conv2_b4; do shapes+=" --shape $s"; done
timeout -s INT "$(left 480)" build/gpu/bin/convladder bench --shapes common/layers.csv $shapes $stages --competitors cudnn --repeats 3 --json "$OUT/layers.json" >"$OUT/bench.txt" 2>&1; say "bench: status $?"; tail -2 "$OUT/bench.txt" | cut -c1-200
sane() { # TOOL STAGE
  timeout 100 compute-sanitizer --tool $1 --error-exitcode 86 build/gpu/bin/convladder check --no-guards --stage $2 --shapes "$OUT/small.csv" \
    --max-gmac 0.003 >"$OUT/san_$1_$2.log" 2>&1; echo "$1 $2 status $? $(grep -E 'SUMMARY' "$OUT/san_$1_$2.log" | tail -1)" >>"$OUT/sanitizer.txt"
}
export -f sane; export OUT
{ grep "^name,n" common/problems.csv; grep -E '^(alexnet_conv1|resnet50_conv1_b64|vgg16_conv3_2_b32|nasty_)' common/problems.csv; } >"$OUT/small.csv"
( for s in 13; do echo "sane racecheck $s"; echo "sane memcheck $s"; done ) | timeout "$(left 520)" xargs -P 3 -I{} bash -c '{}' & S=$!
wait $S; say "sanitizer"
tail -1 "$OUT/test.txt"; grep -aE "^\[  FAILED  \].*ms\)|Failed|\*\*\*" "$OUT/test.txt" | sort | uniq -c | sort -rn | head -25
sort "$OUT/sanitizer.txt" | sed 's/=*//g'; echo "sanitizer runs with 0 reports: $(grep -c 'SUMMARY: 0' "$OUT/sanitizer.txt") of $(wc -l <"$OUT/sanitizer.txt")"
python3 - <<'P'
import glob, re  # the worst of all made-up factors, from the suites' records
for f in sorted(glob.glob("build/gpu/test-results/*.xml")):
    for m in re.findall(r'largest_error"?[ =]*(?:value=)?"([0-9.]+)"', open(f).read()): print("hard factors", f.split("/")[-1], m)
P
python3 "$here/stages_table.py" "$OUT/layers.json" common/layers.csv | tee "$OUT/table.txt"
say done

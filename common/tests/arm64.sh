#!/usr/bin/env bash
# Compiles stage 01 for arm64 on a bare machine, and has QEMU run its suite; then it must ask of memory there what it asks on x86-64.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
packages="g++-aarch64-linux-gnu qemu-user-static cmake make python3 nlohmann-json3-dev libcli11-dev libfmt-dev
  libstb-dev libgtest-dev:arm64 libboost-context-dev:arm64 libblas-dev:arm64"
cross="cmake -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++
  -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64-static --preset"
requests='"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 6585456'  # 6,574,032, and 11,424 of the bias
common/tests/bare_machine.sh --prepare \
  "dpkg --add-architecture arm64; apt-get update -q; apt-get install -qy --no-install-recommends ${packages//$'\n'/}" \
  "set -e; ${cross//$'\n'/} sim -B build/arm64; cmake --build build/arm64 -j 2 --target 01_naive test_01_naive;
   ctest --test-dir build/arm64 -R '^01_naive$'; qemu-aarch64-static build/arm64/bin/01_naive run;
   ${cross//$'\n'/} sim-count -B build/arm64-count; cmake --build build/arm64-count -j 2 --target 01_naive;
   qemu-aarch64-static build/arm64-count/bin/01_naive profile --shape alexnet_conv1 --n 1 --json counts.json;
   grep -q '$requests' counts.json"

#!/usr/bin/env bash
# The steps of Dockerfile on a bare machine, and how long a fresh container takes then to judge an exercise.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
settings="export $(sed -n 's/^ENV //p' Dockerfile)"
steps=$(sed -n '/^RUN /,/[^\\]$/p' Dockerfile | sed 's/^RUN //')
common/tests/bare_machine.sh "$settings; $steps" "$settings; time { ./ladder exercise first_kernel || [ \$? = 1 ]; }" \
  'du -smx /'

# shellcheck shell=bash
# `./ladder doctor`: prints what configuring finds, and installs nothing. Fails where ./ladder run
# can't work. Sourced by ./ladder.

cmd_doctor() {
  local preset packages verdict="./ladder run works here"
  [[ $# -eq 0 ]] || die_usage "doctor takes no argument '$1'"
  if find_tools; then
    choose_backend
    for preset in $([[ -z $nvcc ]] || echo gpu) sim; do
      in_turn "$preset" configuring configure_once "$preset" || true
    done
    awk -F'\t' '!/^#/ && !shown[$3]++ {
      if ($1 == "found") printf "%-18s found    %s (%s)\n", $3, $6, $7 ($8 == "-" ? "" : ", " $8)
      else printf "%-18s missing  %s. Get it: %s (%s)\n", $3, $6, $5, $8 }' \
      "$root/build/$chosen/needs.tsv" "$root/build/sim/needs.tsv"
    packages=$(packages "$chosen" run)
    [[ -z $(missing "$chosen" - 3) ]] || verdict=""
  else
    packages=${lacking[*]} verdict=""
    echo "missing: $packages; what else there is will be found out when they are there"
  fi
  if [[ -n $packages ]] && type -P apt-get >/dev/null && root_prefix >/dev/null; then
    verdict="./ladder run will install: $packages"
  elif [[ -z $verdict ]]; then
    echo "./ladder run can't work yet: apt-get install $packages"
    return 1
  fi
  echo "$verdict; backend: ${chosen:-not known yet}."
}

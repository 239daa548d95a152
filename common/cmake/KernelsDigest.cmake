# cmake -D ROOT=... -D HEADER=... -P KernelsDigest.cmake: writes a header that says which kernels a
# program was built with, as common/profile/support.py does for the scripts:
# `sha256sum 0*/*.cu common/core/* | sha256sum`, of which 12 digits.
file(GLOB paths RELATIVE "${ROOT}" "${ROOT}/0*/*.cu" "${ROOT}/common/core/*")
list(SORT paths)
set(lines "")
foreach(path IN LISTS paths)
  file(SHA256 "${ROOT}/${path}" digest)
  string(APPEND lines "${digest}  ${path}\n")
endforeach()
string(SHA256 digest "${lines}")
string(SUBSTRING "${digest}" 0 12 digest)
file(WRITE "${HEADER}" "#pragma once\n\nconstexpr char KERNELS_DIGEST[] = \"${digest}\";\n")

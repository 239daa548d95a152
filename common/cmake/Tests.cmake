# Tests that need what a machine may lack: registered all the same, and skipped.

# convladder_skip_tests(NEED LABEL NAME...): tests that count as skipped, since NEED is missing.
function(convladder_skip_tests need label)
  foreach(name IN LISTS ARGN)
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: this machine has no ${need}")
    set_tests_properties(${name} PROPERTIES LABELS "${label}" SKIP_REGULAR_EXPRESSION "^skipped: ")
  endforeach()
endfunction()

# convladder_add_script_test(NAME LABEL PYTHON SCRIPT [ARGUMENT...]): PYTHON is one of the interpreters
# that Needs.cmake has chosen; skipped where it is empty.
function(convladder_add_script_test name label python)
  if(python)
    add_test(NAME ${name} COMMAND "${python}" -B ${ARGN})
    set_tests_properties(${name} PROPERTIES LABELS "${label}" SKIP_RETURN_CODE 77)
  else()
    convladder_skip_tests("Python for it (needs.tsv says what is missing)" "${label}" ${name})
  endif()
endfunction()

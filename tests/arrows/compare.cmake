# cmake -DCHECK=… -P compare.cmake: of source/, which is never compiled, CHECK refuses what refused.txt lists, and
# nothing else.
execute_process(
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_CURRENT_LIST_DIR}/source -P ${CHECK}
  ERROR_VARIABLE said
  RESULT_VARIABLE result)
file(READ ${CMAKE_CURRENT_LIST_DIR}/refused.txt expected)
string(REGEX REPLACE "^.*\n\n    (.*[^\n])\n*$" "\n\\1\n" refused "${said}")
string(REPLACE "\n    " "\n" refused "${refused}")
if(result EQUAL 0 OR NOT refused STREQUAL "\n${expected}")
  string(REPLACE "\n" "\n  " expected "${expected}") # what is indented is not wrapped
  message(FATAL_ERROR "refused.txt lists:\n  ${expected}\nbut ${CHECK} refuses:\n${said}")
endif()

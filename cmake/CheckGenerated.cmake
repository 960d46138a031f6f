# cmake -DPROGRAM=… -DARGUMENTS=… -DFILE=… -P CheckGenerated.cmake
# Fails when FILE is not what PROGRAM prints.
separate_arguments(arguments UNIX_COMMAND "${ARGUMENTS}")
execute_process(
  COMMAND ${PROGRAM} ${arguments}
  OUTPUT_VARIABLE printed
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ${ARGUMENTS}: ${result}")
endif()
file(READ ${FILE} written)
if(NOT printed STREQUAL written)
  message(FATAL_ERROR "${FILE} has drifted: write it again with `fcap-updater ${ARGUMENTS}`")
endif()

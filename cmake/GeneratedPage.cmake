# cmake -DPROGRAM=… -DARGUMENTS=… -DFILE=… -DBUILD_DIR=… [-DWRITE=ON] -P GeneratedPage.cmake
# Fails when FILE is not what PROGRAM prints; with WRITE, writes it again instead.
separate_arguments(arguments UNIX_COMMAND "${ARGUMENTS}")
execute_process(
  COMMAND ${PROGRAM} ${arguments}
  OUTPUT_VARIABLE printed
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ${ARGUMENTS}: ${result}")
endif()
if(EXISTS ${FILE})
  file(READ ${FILE} written)
endif()
if(printed STREQUAL written)
  return()
endif()
if(WRITE)
  file(WRITE ${FILE} "${printed}")
  message(STATUS "${FILE} was written again")
else()
  # What is indented is not wrapped.
  message(FATAL_ERROR "${FILE} is not what the program prints, and must not be edited by hand. Write it again:\n"
                      "  cmake --build ${BUILD_DIR} --target docs\n")
endif()

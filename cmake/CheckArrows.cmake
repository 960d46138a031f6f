# cmake -DSOURCE_DIR=… -P CheckArrows.cmake
# Who may know whom. Each room is a folder; its files may include their own headers, those of the rooms named here, and
# the public ones of include/fcap. Any other include, and any use of an outside library in a room that does not wrap it,
# fails the build.
cmake_minimum_required(VERSION 3.22)


# room(<folder> <prefix of its includes> [KNOWS <prefixes>] [WRAPS <outside headers>])
set(rooms)
macro(room folder prefix)
  cmake_parse_arguments(room "" "" "KNOWS;WRAPS" ${ARGN})
  list(APPEND rooms ${prefix})
  set(folder_${prefix} ${folder})
  set(knows_${prefix} ${prefix} ${room_KNOWS})
  set(wraps_${prefix} ${room_WRAPS})
endmacro()

# Small tools. Know nothing.
room(libfcap/base base)
# Pure: no clock, no I/O.
room(libfcap/ledger ledger)
room(libfcap/rules rules KNOWS base ledger)
room(libfcap/segments segments KNOWS ledger)
room(libfcap/events events KNOWS ledger)
room(libfcap/rule_text rule_text KNOWS base ledger rules)
# Transports, each wrapped once.
room(libfcap/tls tls WRAPS openssl)
room(libfcap/signing signing KNOWS base WRAPS openssl)
room(libfcap/redis redis KNOWS base tls)
room(libfcap/postgres postgres KNOWS base tls WRAPS libpq-fe)
room(kafka kafka KNOWS base WRAPS librdkafka)
# Where rules and segments come from.
room(libfcap/sources sources KNOWS base ledger postgres rule_text rules)
# The Checker.
room(libfcap/checker checker KNOWS base ledger redis rules sources)
# The command and the daemon.
room(command_line command_line)
room(updater/settings updater/settings KNOWS base command_line kafka postgres redis)
room(updater/process updater/process KNOWS updater/settings)
room(updater/watch updater/watch KNOWS base kafka redis)
room(updater/metrics updater/metrics KNOWS events sources updater/watch)
room(updater/http updater/http)
room(updater/compaction updater/compaction KNOWS base ledger redis rules updater/metrics)
room(updater/marks updater/marks KNOWS base kafka redis)
room(updater/pipeline updater/pipeline
     KNOWS base events kafka ledger redis updater/compaction updater/marks updater/metrics updater/watch)
room(updater/replay updater/replay KNOWS base kafka ledger redis updater/compaction updater/marks updater/pipeline)
# Every mapping of settings to options.
room(updater/options updater/options
     KNOWS events kafka postgres redis updater/compaction updater/http updater/pipeline updater/replay
           updater/settings updater/watch)
room(updater/doctor updater/doctor
     KNOWS base kafka ledger postgres redis sources updater/options updater/settings updater/watch)
room(updater/commands updater/commands
     KNOWS base command_line events redis sources updater/compaction updater/doctor updater/http updater/metrics
           updater/options updater/pipeline updater/process updater/replay updater/settings updater/watch)
room(updater updater KNOWS base updater/commands updater/metrics updater/process updater/settings)
room(cli/simulate cli/simulate KNOWS base cli events kafka ledger rule_text rules sources)
room(cli cli
     KNOWS base command_line events kafka ledger postgres redis rule_text rules sources updater/options
           updater/settings)
room(include include)

set(wrapped libpq-fe librdkafka hiredis openssl)
set(wrong)
foreach(prefix IN LISTS rooms)
  set(folder ${folder_${prefix}})
  if(prefix STREQUAL "include")
    file(GLOB files ${SOURCE_DIR}/include/fcap/*.h)
  else()
    file(GLOB files ${SOURCE_DIR}/${folder}/*.h ${SOURCE_DIR}/${folder}/*.cc)
  endif()
  foreach(path IN LISTS files)
    file(STRINGS ${path} lines REGEX "^#include ")
    file(RELATIVE_PATH shown ${SOURCE_DIR} ${path})
    foreach(line IN LISTS lines)
      if(line MATCHES "^#include \"(.*)/[^/]*\"")
        set(known ${CMAKE_MATCH_1})
        if(NOT known IN_LIST knows_${prefix})
          list(APPEND wrong "${shown}: ${line}: ${prefix} does not know ${known}")
        endif()
      elseif(line MATCHES "^#include <([a-z-]*)")
        set(library ${CMAKE_MATCH_1})
        if(library IN_LIST wrapped AND NOT library IN_LIST wraps_${prefix})
          list(APPEND wrong "${shown}: ${line}: ${library} is wrapped elsewhere")
        endif()
      endif()
    endforeach()
    # A wrapper's own headers bring the library's names along; calling it is still the wrapper's business alone.
    foreach(call "librdkafka rd_kafka_[a-z0-9_]+ *\\(" "librdkafka RD_KAFKA_[A-Z]" "libpq-fe PQ[a-zA-Z]+ *\\(")
      string(REGEX MATCH "^[a-z-]+" library ${call})
      string(REGEX REPLACE "^[a-z-]+ " "" call ${call})
      if(NOT library IN_LIST wraps_${prefix})
        file(STRINGS ${path} lines REGEX "(^|[^a-zA-Z_])${call}")
        foreach(line IN LISTS lines)
          list(APPEND wrong "${shown}: ${line}: ${library} is wrapped elsewhere")
        endforeach()
      endif()
    endforeach()
  endforeach()
endforeach()
if(wrong)
  list(JOIN wrong "\n  " text)
  message(FATAL_ERROR "Includes that the architecture does not allow (cmake/CheckArrows.cmake):\n  ${text}")
endif()

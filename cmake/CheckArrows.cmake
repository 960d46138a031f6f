# cmake -DSOURCE_DIR=… -P CheckArrows.cmake
# Who may know whom. Each room is a folder of C++ (bench: with its subfolders), or one public header that needs more than
# the others. Its files may include the standard library, their own headers, the public ones of include/fcap (which
# include each other), those of the rooms that it KNOWS, the outside libraries that it USES, and with SYSTEM those of the
# operating system. Any other include, a call of OpenSSL, libpq or librdkafka in a room that does not use it, and a
# folder that is no room fail the build. Only tests/ has no rooms among the folders of C++: tests may include everything.
cmake_minimum_required(VERSION 3.22)

# The headers of the operating system, for rooms with SYSTEM.
set(system_headers "(arpa|linux|net|netinet|sys)/[a-z0-9_]+|dirent|dlfcn|fcntl|malloc|netdb|poll|pthread|sched|semaphore\
|signal|spawn|time|unistd")

# room(<folder or header> [TREE] [SYSTEM] [KNOWS <rooms>] [USES <libraries>]): rooms of libfcap are known without
# "libfcap/", as they are included; a library is the first part of its headers' names. TREE: with all subfolders.
set(places)
set(trees)
set(rooms)
set(parts)
macro(room place)
  cmake_parse_arguments(room "TREE;SYSTEM" "" "KNOWS;USES" ${ARGN})
  list(APPEND places ${place})
  if(room_TREE)
    list(APPEND trees ${place})
  endif()
  string(REGEX REPLACE "^libfcap/" "" name_${place} ${place})
  list(APPEND rooms ${name_${place}})
  set(uses_${place} ${room_USES})
  set(known ${name_${place}} ${room_KNOWS})
  list(JOIN known "|" known)
  list(JOIN room_USES "|" used)
  set(headers_${place} "<([a-z0-9_]+|fcap/[a-z0-9_.+-]+)>|[<\"](${known})/[a-z0-9_]+\\.h[>\"]")
  if(room_USES)
    string(APPEND headers_${place} "|[<\"](${used})(/[A-Za-z0-9_/-]+)?\\.(h|hh|hpp)[>\"]")
  endif()
  if(room_SYSTEM)
    string(APPEND headers_${place} "|<(${system_headers})\\.h>")
  endif()
  string(REGEX MATCH "^[^/]+" part ${place})
  list(APPEND parts ${part})
endmacro()

# What a host sees.
room(include/fcap)
room(include/fcap/asio.h USES asio)
room(include/fcap/asio_handlers.h USES asio)
# Small tools. Know nothing.
room(libfcap/base SYSTEM)
# No clock and no sockets; of files, only the data of time zones, and the snapshot of the rules.
room(libfcap/ledger USES xxhash)
room(libfcap/rules KNOWS base ledger USES date)
room(libfcap/segments SYSTEM KNOWS ledger USES roaring xxhash)
room(libfcap/events KNOWS ledger USES simdjson)
room(libfcap/rule_text SYSTEM KNOWS base ledger rules USES nlohmann xxhash)
room(libfcap/explanation KNOWS base ledger rule_text rules USES nlohmann)
# OpenSSL, in two rooms: TLS over a socket, and the HMAC of signed ids.
room(libfcap/tls SYSTEM USES openssl)
room(libfcap/signing SYSTEM KNOWS base USES nlohmann openssl)
# The way to each server, in one room.
room(libfcap/redis SYSTEM KNOWS base tls USES nlohmann)
room(libfcap/postgres SYSTEM KNOWS base tls USES libpq-fe)
room(kafka KNOWS base USES fmt librdkafka)
# Where rules and segments come from.
room(libfcap/sources SYSTEM KNOWS base ledger postgres rule_text rules)
# The Checker.
room(libfcap/checker SYSTEM KNOWS base explanation ledger redis rules sources USES xxhash)
# The command and the daemon.
room(command_line USES CLI)
room(updater/settings SYSTEM KNOWS base command_line kafka postgres redis USES fmt nlohmann)
room(updater/process SYSTEM KNOWS base updater/settings USES spdlog systemd)
room(updater/watch KNOWS base kafka redis USES fmt)
room(updater/metrics SYSTEM KNOWS events sources updater/watch USES fmt prometheus)
room(updater/http USES civetweb fmt)
room(updater/compaction KNOWS base ledger redis rules updater/metrics USES fmt nlohmann xxhash)
room(updater/marks KNOWS base kafka redis updater/process USES fmt xxhash)
room(updater/pipeline SYSTEM
     KNOWS base events kafka ledger redis updater/compaction updater/marks updater/metrics updater/process updater/watch
     USES fmt xxhash)
room(updater/replay KNOWS base kafka ledger redis updater/compaction updater/marks updater/pipeline updater/watch USES fmt nlohmann)
# Every mapping of settings to options.
room(updater/options
     KNOWS events kafka postgres redis updater/compaction updater/http updater/pipeline updater/replay
           updater/settings updater/watch
     USES fmt)
room(updater/doctor
     KNOWS base kafka ledger postgres redis sources updater/options updater/settings updater/watch
     USES fmt nlohmann)
room(updater/commands SYSTEM
     KNOWS base command_line events kafka redis sources updater/compaction updater/doctor updater/http updater/metrics
           updater/options updater/pipeline updater/process updater/replay updater/settings updater/watch
     USES CLI fmt nlohmann spdlog)
room(updater SYSTEM KNOWS base kafka updater/commands updater/metrics updater/process updater/settings USES fmt)
room(cli/simulate SYSTEM KNOWS base cli events kafka ledger rule_text rules sources USES fmt nlohmann xxhash zlib)
room(cli/explain KNOWS base cli explanation ledger rules USES fmt nlohmann)
room(cli SYSTEM
     KNOWS base command_line events kafka ledger postgres redis rule_text rules sources updater/options
           updater/settings
     USES CLI fmt nlohmann)
# Outside users.
room(examples/ad_server SYSTEM USES CLI civetweb librdkafka zlib)
room(examples/event_loop SYSTEM USES asio)
# Benches measure what is inside, on the tests' servers (test_paths.h says where these are); hiredis is what they compare
# with, and Kafka they reach through kafka/.
room(bench TREE SYSTEM
     KNOWS base checker events kafka ledger postgres redis rule_text rules segments signing sources
           updater/compaction updater/pipeline support tests/support unit/ledger
     USES CLI asio benchmark fmt hiredis nlohmann roaring test_paths xxhash)

# A header of ours may bring a library's names along; calling it is still the business of the rooms that use it alone.
# call(<library> <how its names begin> <how they go on>)
set(calls)
macro(call library begin rest)
  list(APPEND calls ${begin})
  set(library_${begin} ${library})
  set(call_${begin} "(^|[^A-Za-z0-9_])${begin}${rest}")
endmacro()
call(librdkafka rd_kafka_ "[a-z0-9_]+ *[(]")
call(librdkafka RD_KAFKA_ "[A-Z]")
call(libpq-fe PQ "[a-zA-Z]+ *[(]")
foreach(begin ASN1_ BIO_ CRYPTO_ ERR_ EVP_ HMAC_ OPENSSL_ OSSL_ PEM_ RAND_ SSL_ X509_)
  call(openssl ${begin} "[A-Za-z0-9_]+ *[(]")
endforeach()
call(openssl HMAC "[(]")

set(wrong)
set(comment "/[*][^*]*[*]/")

# refuse(<place> <file> <line>): an include that the room's expression does not allow. Its own it may also name without the
# folder, or, with TREE, by the subfolder.
function(refuse place file line)
  set(why "must include a header by its name")
  if(line MATCHES "include[ \t]*[<\"]([^>\"]+)[>\"]")
    set(header ${CMAKE_MATCH_1})
    get_filename_component(beside ${file} DIRECTORY)
    get_filename_component(folder ${header} DIRECTORY)
    if(header MATCHES "^([a-z0-9_]+/)*[a-z0-9_]+\\.h$" AND line MATCHES "\"")
      if((folder STREQUAL "" AND EXISTS ${SOURCE_DIR}/${beside}/${header})
         OR (place IN_LIST trees AND EXISTS ${SOURCE_DIR}/${place}/${header}))
        return()
      endif()
    endif()
    if(folder IN_LIST rooms)
      set(why "does not know ${folder}")
    else()
      set(why "does not use ${header}")
    endif()
  endif()
  set(wrong ${wrong} "${file}: ${line}: ${name_${place}} ${why}" PARENT_SCOPE)
endfunction()

# lines_of(<variable> <file> <expression>): its lines that match, without what CMake takes for the syntax of lists.
function(lines_of variable file expression)
  file(STRINGS ${SOURCE_DIR}/${file} lines ENCODING UTF-8 REGEX "${expression}")
  string(REGEX REPLACE "\\\\;|[][\\\\]" " " lines "${lines}")
  set(${variable} ${lines} PARENT_SCOPE)
endfunction()

list(REMOVE_DUPLICATES parts)
list(TRANSFORM parts PREPEND ${SOURCE_DIR}/)
list(TRANSFORM parts APPEND /*)
file(GLOB_RECURSE files LIST_DIRECTORIES false RELATIVE ${SOURCE_DIR} ${parts})
list(FILTER files INCLUDE REGEX "\\.(c|cc|cpp|cxx|h|hh|hpp|hxx|inc|ipp)$")
list(FILTER files EXCLUDE REGEX "/CMakeFiles/") # an example that is built in its own folder
foreach(file IN LISTS files)
  get_filename_component(folder ${file} DIRECTORY)
  set(place)
  if(file IN_LIST places)
    set(place ${file})
  elseif(folder IN_LIST places)
    set(place ${folder})
  else()
    foreach(tree IN LISTS trees)
      if(file MATCHES "^${tree}/")
        set(place ${tree})
      endif()
    endforeach()
  endif()
  if(NOT place)
    list(APPEND wrong "${file}: ${folder} is no room")
    continue()
  endif()
  lines_of(includes ${file} "^([ \t]|${comment})*#([ \t]|${comment})*(include|import)")
  list(FILTER includes EXCLUDE REGEX "^[ \t]*#[ \t]*include[ \t]*(${headers_${place}})")
  foreach(line IN LISTS includes)
    refuse(${place} ${file} "${line}")
  endforeach()
  file(READ ${SOURCE_DIR}/${file} text)
  foreach(begin IN LISTS calls)
    if(NOT library_${begin} IN_LIST uses_${place})
      string(FIND "${text}" ${begin} found)
      if(NOT found EQUAL -1)
        lines_of(lines ${file} "${call_${begin}}")
        foreach(line IN LISTS lines)
          list(APPEND wrong "${file}: ${line}: ${name_${place}} does not use ${library_${begin}}")
        endforeach()
      endif()
    endif()
  endforeach()
endforeach()
if(wrong)
  list(REMOVE_DUPLICATES wrong)
  list(JOIN wrong "\n  " text)
  message(FATAL_ERROR "What the architecture does not allow (cmake/CheckArrows.cmake):\n  ${text}")
endif()

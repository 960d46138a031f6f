# What the programs need beside themselves: units, a sample configuration, migrations with their runner, the pages of
# docs/ and shell completions. systemd and bash look in fixed places below the prefix.
if(FCAP_BUILD_UPDATER)
  install(FILES systemd/fcap-updater.service systemd/fcap-sweep.service systemd/fcap-sweep.timer
          DESTINATION lib/systemd/system)
  install(FILES systemd/fcap.sysusers.conf DESTINATION lib/sysusers.d RENAME fcap.conf)
  install(FILES systemd/updater.json.sample DESTINATION ${CMAKE_INSTALL_DATADIR}/fcap)
  install(FILES systemd/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME systemd.md)
endif()

# The runner finds the migrations beside itself; the command on the path is a link to it.
install(DIRECTORY sql DESTINATION ${CMAKE_INSTALL_DATADIR}/fcap FILES_MATCHING PATTERN "*.sql")
install(DIRECTORY redis DESTINATION ${CMAKE_INSTALL_DATADIR}/fcap FILES_MATCHING PATTERN "*.acl")
install(PROGRAMS sql/migrate DESTINATION ${CMAKE_INSTALL_DATADIR}/fcap/sql)
file(RELATIVE_PATH migrate_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/fcap/sql/migrate)
file(CREATE_LINK ${migrate_from_bin} ${CMAKE_CURRENT_BINARY_DIR}/fcap-migrate SYMBOLIC)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fcap-migrate DESTINATION ${CMAKE_INSTALL_BINDIR})

install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(FCAP_BUILD_CLI)
  foreach(program fcap fcap-updater)
    install(FILES cmake/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
            RENAME ${program})
  endforeach()
endif()

# Manual pages, from the tables and descriptions that the reference pages and --help come from.
if(FCAP_BUILD_CLI AND FCAP_BUILD_UPDATER AND NOT CMAKE_CROSSCOMPILING)
  set(man_dir ${CMAKE_CURRENT_BINARY_DIR}/man)
  add_custom_command(
    OUTPUT ${man_dir}/fcap.1 ${man_dir}/fcap-updater.8 ${man_dir}/updater.json.5
    COMMAND ${CMAKE_COMMAND} -E make_directory ${man_dir}
    COMMAND fcap-cli --man-page > ${man_dir}/fcap.1
    COMMAND fcap-updater reference man > ${man_dir}/fcap-updater.8
    COMMAND fcap-updater reference man-configuration > ${man_dir}/updater.json.5
    DEPENDS fcap-cli fcap-updater
    COMMENT "Writing the manual pages"
    VERBATIM)
  add_custom_target(man_pages ALL DEPENDS ${man_dir}/fcap.1 ${man_dir}/fcap-updater.8 ${man_dir}/updater.json.5)
  install(FILES ${man_dir}/fcap.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${man_dir}/fcap-updater.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
  install(FILES ${man_dir}/updater.json.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
  find_program(FCAP_MANDOC mandoc)
  if(FCAP_BUILD_TESTS AND FCAP_MANDOC)
    enable_testing()
    add_test(NAME docs_man COMMAND ${FCAP_MANDOC} -T lint -W error ${man_dir}/fcap.1 ${man_dir}/fcap-updater.8
                                   ${man_dir}/updater.json.5)
    set_tests_properties(docs_man PROPERTIES LABELS docs)
  endif()
endif()

# What the programs need beside themselves: units, a sample configuration, migrations with their runner, the pages of
# docs/ and shell completions. systemd and bash look in fixed places below the prefix.
if(FCAP_BUILD_UPDATER)
  install(FILES systemd/fcap-updater.service systemd/fcap-sweep.service systemd/fcap-sweep.timer
          DESTINATION lib/systemd/system)
  install(FILES systemd/updater.json.sample DESTINATION ${CMAKE_INSTALL_DATADIR}/fcap)
  install(FILES systemd/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME systemd.md)
endif()

# In the same order below share/fcap as in a checkout, which is how the runner finds what it needs.
install(DIRECTORY sql DESTINATION ${CMAKE_INSTALL_DATADIR}/fcap FILES_MATCHING PATTERN "*.sql")
install(PROGRAMS scripts/migrate DESTINATION ${CMAKE_INSTALL_DATADIR}/fcap/scripts)
install(FILES scripts/lib/common.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/fcap/scripts/lib)
file(RELATIVE_PATH migrate_from_bin ${CMAKE_INSTALL_FULL_BINDIR}
     ${CMAKE_INSTALL_FULL_DATADIR}/fcap/scripts/migrate)
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

# cmake -D FROM=X.cu -D TO=X.cpp -P launches.cmake: writes each `kernel<<<grid, block>>>(arguments);`
# as the call of the simulator that does the same, on the same line.
file(READ "${FROM}" text)
string(ASCII 1 semicolon)  # CMake's own mean something to it
string(REPLACE ";" "${semicolon}" text "${text}")
string(REGEX REPLACE "([A-Za-z_0-9]+)<<<([^<>]*),([^<>,]*)>>>(\\([^${semicolon}]*\\))"
  "convladder::simulator::launch(\\2,\\3, nullptr, [=] { \\1\\4${semicolon} }, reinterpret_cast<const void*>(\\1))"
  text "${text}")
string(REPLACE "${semicolon}" ";" text "${text}")
file(WRITE "${TO}" "#include \"common/simulator/launch.h\"\n#line 1 \"${FROM}\"\n${text}")

# A text file as a C string: cmake -DFROM=FILE -DTO=FILE.c -DNAME=symbol -P embed.cmake
file(READ ${FROM} text HEX)
string(REGEX REPLACE "(................................)" "\\1\n" text "${text}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," text "${text}")
file(WRITE ${TO} "extern const char ${NAME}[];\nconst char ${NAME}[] = {\n${text}0};\n")

// Code that nobody calls, with unwinding rules of some 9 MiB: so many functions that their tables are made in parts.
asm(".text\n"
    ".rept 30000\n"
    ".cfi_startproc\n"
    ".rept 40\n"
    ".skip 4, 0x90\n"
    ".cfi_adjust_cfa_offset 8\n"
    ".skip 4, 0x90\n"
    ".cfi_adjust_cfa_offset 16\n"
    ".endr\n"
    "ret\n"
    ".cfi_endproc\n"
    ".endr\n");

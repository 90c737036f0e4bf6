// Code that nobody calls, with unwinding rules of some 700 KiB: four thousand functions of forty rules each.
asm(".text\n"
    ".rept 4000\n"
    ".cfi_startproc\n"
    ".rept 20\n"
    "nop\n"
    ".cfi_adjust_cfa_offset 8\n"
    "nop\n"
    ".cfi_adjust_cfa_offset 16\n"
    ".endr\n"
    "ret\n"
    ".cfi_endproc\n"
    ".endr\n");

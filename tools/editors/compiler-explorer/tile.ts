/* tilec in Compiler Explorer: lib/compilers/tile.ts of an instance (add.py puts it there). */
import type {LLVMIrBackendOptions} from '../../types/compilation/ir.interfaces.js';
import type {PreliminaryCompilerInfo} from '../../types/compiler.interfaces.js';
import type {ParseFiltersAndOutputOptions} from '../../types/features/filters.interfaces.js';
import {BaseCompiler} from '../base-compiler.js';
import type {CompilationEnvironment} from '../compilation-env.js';
import {PTXAsmParser} from '../parsers/asm-parser-ptx.js';
import {BaseParser} from './argument-parsers.js';

export class TileCompiler extends BaseCompiler {
    static get key() {
        return 'tile';
    }

    constructor(info: PreliminaryCompilerInfo, env: CompilationEnvironment) {
        super(info, env);
        this.compiler.supportsIrView = true;
        this.compiler.irArg = ['--emit', 'llvm'];
        if (this.compiler.instructionSet === 'ptx') this.asm = new PTXAsmParser(this.compilerProps);
    }

    /* Of an option that is given twice, tilec takes the last: what follows, and the user's options, overrule these. */
    override optionsForFilter(filters: ParseFiltersAndOutputOptions, outputFilename: string) {
        return ['-g', '--emit', 'asm', '-o', this.filename(outputFilename)];
    }

    /* A file of its own: assembly and LLVM IR are made at the same time. */
    override generateIR(
        inputFilename: string,
        options: string[],
        irOptions: LLVMIrBackendOptions,
        produceCfg: boolean,
        filters: ParseFiltersAndOutputOptions,
    ) {
        const file = this.getIrOutputFilename(inputFilename, filters, irOptions);
        return super.generateIR(inputFilename, [...options, '-o', this.filename(file)], irOptions, produceCfg, filters);
    }

    override getArgumentParserClass() {
        return BaseParser;
    }
}

# Completion of tilec for fish.
function __tilec_words
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    for line in ($words[1] completion words $words[2..-1] "$typed" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$typed"
            case :folders
                __fish_complete_directories "$typed"
            case :tile
                __fish_complete_suffix .tile
            case '*'
                echo $line
        end
    end
end
complete -c tilec -f -a '(__tilec_words)'

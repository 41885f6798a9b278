[(block) (struct) (parameters) (arguments) (list) (set) (comment)] @fold

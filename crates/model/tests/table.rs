//! What the call table says, and that it agrees with itself.

use refrain_model::*;

fn get(name: &str) -> &'static Function {
    function(name).unwrap_or_else(|| panic!("{name} is not in the table"))
}

/// The MPI 3.0 standard removed these; libraries still export them.
const REMOVED: [&str; 10] = [
    "MPI_Address",
    "MPI_Errhandler_create",
    "MPI_Errhandler_get",
    "MPI_Errhandler_set",
    "MPI_Type_extent",
    "MPI_Type_hindexed",
    "MPI_Type_hvector",
    "MPI_Type_lb",
    "MPI_Type_struct",
    "MPI_Type_ub",
];

#[test]
fn every_function_is_there() {
    let count = |test: &dyn Fn(&str) -> bool| functions().iter().filter(|f| test(f.name)).count();
    let tool = count(&|n| n.starts_with("MPI_T_"));
    let large = count(&|n| n.ends_with("_c"));
    let removed = count(&|n| REMOVED.contains(&n));
    assert_eq!((tool, large, removed), (51, 159, 10));
    assert_eq!(functions().len() - tool - large - removed, 480);
    let by_version = |since| functions().iter().filter(|f| f.since == since).count();
    assert_eq!([31, 40, 41, 50].map(by_version), [411 + 10, 633 - 411, 662 - 633, 690 - 662]);
    assert!(functions().is_sorted_by_key(|f| f.name));
    assert_eq!(function("MPI_Nonsense"), None);
}

/// Parameters that differ between the two in anything but, with `large`, the C type.
fn differences(a: &[Param], b: &[Param], large: bool) -> Vec<&'static str> {
    let same = |a: &Param, b: &Param| {
        let wider = match (a.ctype, b.ctype) {
            (CType::Int, CType::Count | CType::Aint) | (CType::Aint, CType::Count) => true,
            (CType::Function(narrow), CType::Function(wide)) => wide == format!("{narrow}_c"),
            _ => false,
        };
        *a == Param { ctype: a.ctype, ..*b } && (a.ctype == b.ctype || large && wider)
    };
    let longer = a.len().max(b.len());
    let names = (0..longer).map(|i| match (a.get(i), b.get(i)) {
        (Some(a), Some(b)) if same(a, b) => None,
        (a, b) => a.or(b).map(|p| p.name),
    });
    names.flatten().collect()
}

#[test]
fn large_count_forms_agree() {
    let mut checked = 0;
    for wide in functions() {
        let Some(narrow) = wide.name.strip_suffix("_c").map(get) else { continue };
        checked += 1;
        assert_eq!(
            (wide.persistent, wide.silent, wide.returns),
            (narrow.persistent, narrow.silent, narrow.returns)
        );
        // These two also tell large counts apart, in parameters of their own.
        if ["MPI_Type_get_contents_c", "MPI_Type_get_envelope_c"].contains(&wide.name) {
            let names = |f: &Function| f.params.iter().map(|p| p.name).collect::<Vec<_>>();
            let without = names(wide).into_iter().filter(|n| !n.contains("large_counts")).collect::<Vec<_>>();
            assert_eq!(without, names(narrow));
            continue;
        }
        assert!(differences(narrow.params, wide.params, true).is_empty(), "{}", wide.name);
        let widened = narrow.params.iter().zip(wide.params).any(|(n, w)| n.ctype != w.ctype);
        assert!(widened, "{} is no wider than {}", wide.name, narrow.name);
    }
    assert_eq!(checked, 159);
}

/// The blocking function whose non-blocking or persistent form this is, by its name.
fn blocking(name: &str) -> Option<&'static Function> {
    let capital = |prefix: &str, rest: &str| {
        let (first, tail) = rest.split_at_checked(1)?;
        first
            .chars()
            .all(|c| c.is_ascii_lowercase())
            .then(|| format!("{prefix}{}{tail}", first.to_uppercase()))
    };
    let name = if let Some(rest) = name.strip_prefix("MPI_File_i") {
        format!("MPI_File_{rest}")
    } else if let Some(base) = name.strip_suffix("_init").or(name.strip_suffix("_init_c")) {
        format!("{base}{}", if name.ends_with("_c") { "_c" } else { "" })
    } else {
        let rest = name.strip_prefix("MPI_I").or(name.strip_prefix("MPI_R"))?;
        capital("MPI_", rest)?
    };
    function(&name)
}

#[test]
fn nonblocking_and_persistent_forms_agree() {
    let mut checked = 0;
    for later in functions() {
        // Probes answer with a flag instead of a request.
        let other = ["MPI_Iprobe", "MPI_Improbe"].contains(&later.name);
        let Some(now) = blocking(later.name).filter(|_| !other && later.index_of("request").is_some()) else {
            continue;
        };
        checked += 1;
        let start = now.params.iter().take_while(|p| p.name != "status").count();
        let rest: Vec<_> = later.params[start.min(later.params.len())..].iter().map(|p| p.name).collect();
        let to_a_peer = later.name.contains("end_init") || later.name.contains("Recv_init");
        assert_eq!(
            rest,
            if later.persistent && !to_a_peer { vec!["info", "request"] } else { vec!["request"] },
            "{}",
            later.name
        );
        let common = &later.params[..start];
        assert_eq!(differences(&now.params[..start], common, false), Vec::<&str>::new(), "{}", later.name);
        let request = later.params.last().unwrap();
        assert_eq!((request.dir, request.effect), (Dir::Out, Effect::Create), "{}", later.name);
    }
    // Non-blocking: 8 point-to-point, 22 collective, 10 file, 4 one-sided; persistent: 5 and 22; all but the two of
    // MPI_Barrier also large.
    assert_eq!(checked, 2 * (8 + 22 + 10 + 4 + 5 + 22) - 2);
}

#[test]
fn persistent_means_a_request_that_stays() {
    for f in functions() {
        let named = f.name.contains("_init") && f.index_of("request").is_some();
        assert_eq!(f.persistent, named, "{}", f.name);
    }
}

#[test]
fn conversions_are_silent() {
    for f in functions() {
        let ends = ["_f2c", "_c2f", "_fromint", "_toint", "_c2f08", "_f082c", "_f082f", "_f2f08"];
        assert_eq!(f.silent, ends.iter().any(|end| f.name.ends_with(end)), "{}", f.name);
        assert!(f.silent || f.returns != Returns::Converted, "{}", f.name);
    }
}

#[test]
fn indices_point_at_the_right_kind() {
    for f in functions() {
        for p in f.params {
            let at = |i: u8| &f.params[usize::from(i)];
            let say = || format!("{}({})", f.name, p.name);
            let comm = |i| at(i).kind == Kind::Handle(Class::Comm) && at(i).dir == Dir::In;
            let win = |i| at(i).kind == Kind::Handle(Class::Win) && at(i).dir == Dir::In;
            let number = |i| matches!(at(i).ctype, CType::Int | CType::Count);
            if let Kind::Peer(i) | Kind::Root(i) = p.kind {
                assert!(comm(i) || win(i), "{}", say());
            }
            for len in p.len {
                let good = match *len {
                    Len::Param(i) | Len::Triple(i) => number(i) && at(i).len.is_empty(),
                    Len::Sum(i) | Len::Last(i) => number(i) && !at(i).len.is_empty() && at(i).dir == Dir::In,
                    Len::Size(i)
                    | Len::LocalSize(i)
                    | Len::InDegree(i)
                    | Len::OutDegree(i)
                    | Len::CartDims(i) => comm(i),
                    Len::Fixed(n) => n > 0,
                    Len::Asked(..) | Len::Neighbours(..) => p.dir == Dir::Out && p.len.len() == 2,
                };
                assert!(good, "{}: {len:?}", say());
            }
            for cond in p.when {
                let good = match *cond {
                    Cond::AtRoot(i) | Cond::AtLeaf(i) | Cond::NotNull(i) => {
                        matches!(at(i).kind, Kind::Root(_))
                    }
                    Cond::NotInPlace(i) => at(i).kind == Kind::Buffer,
                    Cond::Flag(i) => at(i).kind == Kind::Logical && at(i).dir == Dir::Out,
                    Cond::Defined(i) => at(i).kind == Kind::Undefinable && at(i).dir == Dir::Out,
                };
                assert!(good, "{}: {cond:?}", say());
            }
            match p.effect {
                Effect::CreateComm(Scope::Parent(i)) => assert!(comm(i), "{}", say()),
                Effect::CreateComm(Scope::ParentLater(i, request)) => {
                    assert!(comm(i), "{}", say());
                    assert_eq!(at(request).effect, Effect::Create, "{}", say());
                }
                _ => {}
            }
        }
    }
}

#[test]
fn effects_fit_directions() {
    for f in functions().iter().filter(|f| !f.silent) {
        for p in f.params {
            let say = || format!("{}({})", f.name, p.name);
            let Kind::Handle(class) = p.kind else {
                let frees_memory = f.name == "MPI_Free_mem" && p.effect == Effect::Free;
                assert!(frees_memory || p.effect == Effect::None, "{}", say());
                continue;
            };
            let makes = matches!(p.effect, Effect::Create | Effect::CreateComm(_) | Effect::Alias);
            assert_eq!(makes, p.dir == Dir::Out, "{}", say());
            assert_eq!(matches!(p.effect, Effect::CreateComm(_)), makes && class == Class::Comm, "{}", say());
            let starts = ["MPI_Start", "MPI_Startall"].contains(&f.name);
            assert_eq!(p.effect == Effect::Start, starts, "{}", say());
            let stays = ["MPI_Type_commit", "MPI_Cancel"].contains(&f.name);
            assert_eq!(p.dir == Dir::InOut && p.effect == Effect::None, stays, "{}", say());
        }
    }
}

/// One parameter, in the words of the types.
fn check(f: &str, param: &str, expected: &str) {
    let f = get(f);
    let p = &f.params[f.index_of(param).unwrap_or_else(|| panic!("{} has no {param}", f.name))];
    let mut said = format!("{:?} {:?}", p.dir, p.kind);
    for len in p.len {
        said += &format!(" {len:?}");
    }
    for cond in p.when {
        said += &format!(" {cond:?}");
    }
    if p.effect != Effect::None {
        said += &format!(" {:?}", p.effect);
    }
    assert_eq!(said, expected, "{}({param})", f.name);
}

#[test]
fn point_to_point() {
    check("MPI_Send", "dest", "In Peer(5)");
    check("MPI_Recv", "status", "Out Status");
    check("MPI_Irecv_c", "count", "In Int");
    check("MPI_Irecv_c", "request", "Out Handle(Request) Create");
    check("MPI_Iprobe", "status", "Out Status Flag(3)");
    check("MPI_Improbe", "message", "Out Handle(Message) Flag(3) Create");
    check("MPI_Mrecv", "message", "InOut Handle(Message) Free");
    check("MPI_Precv_init", "source", "In Peer(6)");
    check("MPI_Sendrecv_replace", "buf", "InOut Buffer");
    check("MPI_Get_count", "count", "Out Undefinable");
}

#[test]
fn completion() {
    check("MPI_Waitall", "array_of_requests", "InOut Handle(Request) Param(0) Complete");
    check("MPI_Waitall", "array_of_statuses", "Out Status Param(0)");
    check("MPI_Waitany", "indx", "Out Undefinable");
    check("MPI_Waitany", "status", "Out Status");
    check("MPI_Waitsome", "array_of_indices", "Out Undefinable Param(2)");
    check("MPI_Testsome", "array_of_statuses", "Out Status Param(2)");
    check("MPI_Testall", "array_of_statuses", "Out Status Param(0) Flag(2)");
    check("MPI_Testany", "status", "Out Status Flag(3)");
    check("MPI_Test", "status", "Out Status Flag(1)");
    check("MPI_Request_get_status", "request", "In Handle(Request)");
    check("MPI_Request_free", "request", "InOut Handle(Request) Free");
    check("MPI_Start", "request", "InOut Handle(Request) Start");
    check("MPI_Cancel", "request", "InOut Handle(Request)");
}

#[test]
fn collectives() {
    check("MPI_Bcast", "count", "In Int NotNull(3)");
    check("MPI_Gatherv", "sendbuf", "In Buffer AtLeaf(7)");
    check("MPI_Gatherv", "sendcount", "In Int AtLeaf(7) NotInPlace(0)");
    check("MPI_Igatherv_c", "displs", "In Int Size(8) AtRoot(7)");
    check("MPI_Gatherv", "root", "In Root(8)");
    check("MPI_Scatter", "sendbuf", "In Buffer AtRoot(6)");
    check("MPI_Scatter_init", "recvtype", "In Handle(Datatype) AtLeaf(6) NotInPlace(3)");
    check("MPI_Scatterv", "sendcounts", "In Int Size(8) AtRoot(7)");
    check("MPI_Reduce", "recvbuf", "Out Buffer AtRoot(5)");
    check("MPI_Reduce", "sendbuf", "In Buffer AtLeaf(5)");
    check("MPI_Allreduce", "count", "In Int");
    check("MPI_Allgatherv", "sendcount", "In Int NotInPlace(0)");
    check("MPI_Ialltoallw", "sendtypes", "In Handle(Datatype) Size(8) NotInPlace(0)");
    check("MPI_Ialltoallw", "recvtypes", "In Handle(Datatype) Size(8)");
    check("MPI_Reduce_scatter", "recvcounts", "In Int LocalSize(5)");
    check("MPI_Neighbor_allgatherv", "displs", "In Int InDegree(7)");
    check("MPI_Ineighbor_alltoallw", "sendtypes", "In Handle(Datatype) OutDegree(8)");
    check("MPI_Neighbor_alltoallv_init_c", "rdispls", "In Int InDegree(8)");
}

#[test]
fn communicators() {
    check("MPI_Comm_rank", "rank", "Out Peer(0)");
    check("MPI_Comm_split", "color", "In Undefinable");
    check("MPI_Comm_split", "newcomm", "Out Handle(Comm) CreateComm(Parent(0))");
    check("MPI_Comm_split_type", "split_type", "In Enum(\"split_type\")");
    check("MPI_Comm_idup", "newcomm", "Out Handle(Comm) CreateComm(ParentLater(0, 2))");
    check("MPI_Comm_create_group", "newcomm", "Out Handle(Comm) CreateComm(Members)");
    check("MPI_Comm_get_parent", "parent", "Out Handle(Comm) CreateComm(Process)");
    check("MPI_Comm_disconnect", "comm", "InOut Handle(Comm) Free");
    check("MPI_Intercomm_create", "newintercomm", "Out Handle(Comm) CreateComm(Inter)");
    check("MPI_Intercomm_create", "remote_leader", "In Root(2) AtRoot(1)");
    check("MPI_Intercomm_merge", "newintracomm", "Out Handle(Comm) CreateComm(Parent(0))");
    check("MPI_Comm_spawn", "argv", "In Strings AtRoot(4)");
    check("MPI_Comm_spawn", "array_of_errcodes", "Out Int Param(2) AtRoot(4)");
    check("MPI_Comm_spawn_multiple", "array_of_argv", "In StringsOfStrings Param(0) AtRoot(5)");
    check("MPI_Comm_spawn_multiple", "array_of_errcodes", "Out Int Sum(3) AtRoot(5)");
}

#[test]
fn topologies_and_groups() {
    check("MPI_Cart_get", "periods", "Out Logical Param(1) CartDims(0)");
    check("MPI_Cart_sub", "remain_dims", "In Logical CartDims(0)");
    check("MPI_Cart_shift", "rank_source", "Out Peer(0)");
    check("MPI_Graph_create", "edges", "In Rank Last(2)");
    check("MPI_Dist_graph_create", "weights", "In Int Sum(3)");
    check("MPI_Dist_graph_create_adjacent", "destinations", "In Peer(0) Param(4)");
    check("MPI_Dist_graph_neighbors", "sources", "Out Peer(0) Param(1) InDegree(0)");
    check("MPI_Graph_neighbors", "neighbors", "Out Peer(0) Param(2) Neighbours(0, 1)");
    check("MPI_Graph_get", "edges", "Out Rank Param(2) Asked(GraphEdges, 0)");
    check("MPI_Dist_graph_neighbors", "destweights", "Out Int Param(4) Asked(OutWeights, 0)");
    check("MPI_Topo_test", "status", "Out Enum(\"topology\")");
    check("MPI_Group_range_incl", "ranges", "In Int Triple(1)");
    check("MPI_Group_rank", "rank", "Out Rank");
}

#[test]
fn the_rest() {
    check("MPI_Init", "argc", "InOut ArgCount");
    check("MPI_Init_thread", "argv", "InOut ArgVector");
    check("MPI_Pcontrol", "varargs", "In Skip");
    check("MPI_Get_processor_name", "name", "Out String Param(1)");
    check("MPI_Info_get", "value", "Out String Flag(4)");
    check("MPI_Info_get_string", "value", "Out String Param(2) Flag(4)");
    check("MPI_Info_create_env", "argv", "In Strings Param(0)");
    check("MPI_Lookup_name", "port_name", "Out String");
    check("MPI_Comm_get_attr", "attribute_val", "Out OutAttribute Flag(3)");
    check("MPI_Comm_set_attr", "attribute_val", "In Value");
    check("MPI_Comm_create_keyval", "comm_keyval", "Out Handle(Keyval) Create");
    check("MPI_Comm_get_errhandler", "errhandler", "Out Handle(Errhandler) Alias");
    check("MPI_Buffer_detach", "buffer_addr", "Out OutPointer");
    check("MPI_Alloc_mem", "baseptr", "Out OutPointer");
    check("MPI_Get_address", "address", "Out Int");
    check("MPI_Put", "target_rank", "In Peer(7)");
    check("MPI_Win_lock", "assert", "In Mask(\"assert\")");
    check("MPI_Win_shared_query", "baseptr", "Out OutPointer");
    check("MPI_File_open", "amode", "In Mask(\"amode\")");
    check("MPI_File_close", "fh", "InOut Handle(File) Free");
    check("MPI_File_iwrite_at_all_c", "request", "Out Handle(Request) Create");
    check("MPI_Type_commit", "datatype", "InOut Handle(Datatype)");
    check("MPI_Type_create_struct", "array_of_types", "In Handle(Datatype) Param(0)");
    check("MPI_Type_create_darray", "array_of_dargs", "In Enum(\"dargs\") Param(2)");
    check(
        "MPI_Type_get_contents",
        "array_of_datatypes",
        "Out Handle(Datatype) Param(3) Asked(Datatypes, 0) Alias",
    );
    check("MPI_Type_create_f90_real", "newtype", "Out Handle(Datatype) Alias");
    check("MPI_T_cvar_get_info", "desc", "Out String Param(7)");
    check("MPI_T_event_handle_free", "event_registration", "In Handle(ToolEventRegistration) Free");
    assert_eq!(get("MPI_Wtime").returns, Returns::Clock);
    assert_eq!(get("MPI_Aint_add").returns, Returns::Aint);
}

#[test]
fn constants_are_found() {
    assert!(constants().is_sorted_by_key(|c| c.name));
    for c in constants() {
        assert_eq!(constant(c.name), Some(c));
        assert!(constants_of(c.set).any(|other| other == c));
        assert_eq!(constant_of_bit(c.set, c.bit()), Some(c));
        let sized = c.set == "datatype" && c.name != "MPI_DATATYPE_NULL";
        assert_eq!(c.size.is_some(), sized, "{}", c.name);
    }
    assert_eq!(constant("MPI_NONSENSE"), None);
    assert_eq!(constants_of("nonsense").count(), 0);
}

/// Of all constants, those that can stand for a number or a handle of a kind.
#[test]
fn constants_stand_where_their_kind_has_them() {
    let all = |kind: Kind| constants().iter().map(|c| c.name).filter(move |name| kind.can_be(name));
    let some = |kind: Kind| {
        let mut names: Vec<&str> = all(kind).collect();
        names.sort_unstable();
        names
    };
    let ranks = ["MPI_ANY_SOURCE", "MPI_PROC_NULL", "MPI_ROOT"];
    for kind in [Kind::Int, Kind::Logical] {
        assert_eq!(all(kind).next(), None, "{kind:?}");
    }
    assert_eq!(some(Kind::Tag), ["MPI_ANY_TAG"]);
    assert_eq!(some(Kind::Undefinable), ["MPI_UNDEFINED"]);
    assert_eq!(some(Kind::Root(0)), ranks);
    for kind in [Kind::Peer(0), Kind::Rank] {
        assert_eq!(some(kind), [&ranks[..], &["MPI_UNDEFINED"]].concat());
    }
    assert_eq!(some(Kind::Enum("displacement")), ["MPI_DISPLACEMENT_CURRENT"]);
    assert!(some(Kind::Enum("split_type")).contains(&"MPI_UNDEFINED"));
    assert_eq!(some(Kind::Mask("assert")).len(), 5);
    for class in [Class::Comm, Class::Datatype, Class::Keyval] {
        assert_eq!(all(Kind::Handle(class)).count(), constants_of(class.set()).count());
    }
    assert!(!Kind::Handle(Class::Keyval).can_be("MPI_INT"));
    assert!(!Kind::Tag.can_be("MPI_NONSENSE"));
}

#[test]
fn sets() {
    let names = |set| constants_of(set).map(|c| c.name).collect::<Vec<_>>();
    assert_eq!(names("rank"), ["MPI_ANY_SOURCE", "MPI_PROC_NULL", "MPI_ROOT"]);
    assert_eq!(names("topology"), ["MPI_GRAPH", "MPI_CART", "MPI_DIST_GRAPH", "MPI_UNDEFINED"]);
    assert_eq!(names("undefined"), ["MPI_UNDEFINED"]);
    let place = |name| names("datatype").iter().position(|n| *n == name);
    assert!(place("MPI_LONG_LONG") < place("MPI_LONG_LONG_INT"));
    assert!(place("MPI_C_FLOAT_COMPLEX") < place("MPI_C_COMPLEX"));
    assert_eq!(constant("MPI_MODE_CREATE").unwrap().bit(), 0);
    assert_eq!(constant("MPI_MODE_APPEND").unwrap().bit(), 7);
    // Past the set's own members: MPI_UNDEFINED is valid for a topology, but is none of its bits.
    assert_eq!(constant_of_bit("topology", 3), None);
    // Every class but the two of events has a null handle at least.
    for f in functions() {
        for p in f.params {
            let Kind::Handle(class) = p.kind else { continue };
            let event = matches!(class, Class::ToolEventRegistration | Class::ToolEventInstance);
            assert_eq!(constants_of(class.set()).next().is_none(), event, "{class:?}");
        }
    }
}

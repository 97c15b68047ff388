; ptc prelude test examples/desk/desk_test.clj --prelude examples/desk/desk.clj --upstreams-config examples/desk/upstreams.json

(defn ids [tickets] (mapv :id tickets))

(deftest tickets-are-sorted-and-of-one-state
  (is (= ["t-103" "t-101" "t-104"] (ids (desk/tickets "open"))))
  (is (= ["t-102"] (ids (desk/tickets "closed"))))
  (is (= [] (desk/tickets "lost")))
  (is (every? #(contains? (set desk/states) (:state %)) (desk/tickets "open"))))

(deftest customers-are-known-by-their-facts
  (is (= {:name "Ada" :plan "pro" :since "2024-02-11"} (desk/customer "Ada")))
  (is (nil? (desk/customer "Nobody"))))

(deftest waiting-joins-both-servers
  (is (= ["t-103" "t-104"] (ids (desk/waiting "pro"))))
  (is (= ["t-101"] (ids (desk/waiting "free")))))

(deftest notes-need-a-customer
  (is (thrown? (desk/note! "Nobody" "city: Oslo"))))
